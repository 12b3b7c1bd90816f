"""The options of a small nova."""
from oslo_config import cfg


def list_opts():
    group = cfg.OptGroup("filter_scheduler")
    return [
        (None, [cfg.StrOpt("host"), cfg.BoolOpt("debug")]),
        ("database", [cfg.IntOpt("max_retries")]),
        (group, [cfg.IntOpt("host_subset_size"), cfg.MultiStrOpt("available_filters")]),
        ("neutron", [cfg.StrOpt("password")]),
    ]
