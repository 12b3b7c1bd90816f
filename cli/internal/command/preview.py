# Prints the effective view that a pod would have with the snippet of the standard input, and
# a warning for each option that no program of the image registers. Nothing is written. The
# arguments are merge-config, the folder of the parts, and the name of the part that the
# snippet replaces.
import collections
import difflib
import importlib.machinery
import importlib.util
import os
import sys

# The libraries whose options Nova registers, by their entry points (oslo-config-generator
# takes the same names).
LIBRARIES = [
    "keystonemiddleware.audit", "keystonemiddleware.auth_token", "oslo.cache",
    "oslo.concurrency", "oslo.config", "oslo.db", "oslo.limit", "oslo.log", "oslo.messaging",
    "oslo.middleware", "oslo.middleware.cors", "oslo.middleware.healthcheck",
    "oslo.middleware.http_proxy_to_wsgi", "oslo.middleware.sizelimit", "oslo.policy",
    "oslo.privsep", "oslo.reports", "oslo.service.periodic_task", "oslo.service.service",
    "oslo.service.sslutils", "oslo.service.wsgi", "oslo.versionedobjects", "osprofiler",
]
# Sections that an option of Nova names, for mediated devices and virtual GPUs.
NAMED_SECTIONS = ("mdev_", "vgpu_")
OF_THE_OPERATOR = ("10-defaults.conf", "50-connections.conf")


def registered(project):
    """Return {section: names} of the options that the image knows, {} if it cannot tell."""
    try:
        from stevedore import named
        found = named.NamedExtensionManager(
            "oslo.config.opts", names=[project, *LIBRARIES], warn_on_missing_entrypoint=False)
        known = collections.defaultdict(set)
        for extension in found:
            for group, options in extension.plugin():
                for o in options:
                    section = getattr(group, "name", group) or "DEFAULT"
                    former = [(d.group or section, d.name or o.dest) for d in o.deprecated_opts]
                    for section_name, name in [(section, o.dest), (section, o.name), *former]:
                        known[merge.group_name(section_name)].add(name)
        return known if project in found else {}
    except Exception:  # an image without stevedore, or with an extension that does not load
        return {}


def nearest(known, section, name):
    """Return " (did you mean ...?)" with the option that the author may have meant, or ""."""
    elsewhere = sorted(s for s in known if name in known[s])
    close = difflib.get_close_matches(name, known.get(section, ()), 1)
    if elsewhere:
        return ": did you mean [%s] %s?" % (elsewhere[0], name)
    return ": did you mean %s?" % close[0] if close else ""


def warnings(view, known):
    """Yield a line for each option of a snippet that no program registers."""
    for section, name in sorted(view) if known else ():
        parts = {line.setting.part for line in view[section, name]}
        if (parts.isdisjoint(OF_THE_OPERATOR) and name not in known.get(section, ())
                and not section.startswith(NAMED_SECTIONS)):
            yield "# warning: %s: this image has no option [%s] %s%s\n" % (
                min(parts), section, name, nearest(known, section, name))


script, folder, custom = sys.argv[1:]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("merge_config", script)
merge = importlib.util.module_from_spec(importlib.util.spec_from_loader("merge_config", loader))
loader.exec_module(merge)
sys.excepthook = lambda kind, error, _: print(
    error if kind is merge.Refused else kind.__name__, file=sys.stderr)  # without any value

snippet = sys.stdin.buffer.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
names = sorted({n for n in os.listdir(folder) if n.endswith(".conf")} | {custom})
parts = [merge.parse(n, snippet if n == custom else merge.read(os.path.join(folder, n)))
         for n in names]
options = merge.parse_options(merge.read(os.path.join(os.path.dirname(script), "options.txt")))
project = os.path.basename(folder.rstrip("/")).removesuffix(".conf.d")
view = merge.resolve(parts, options)
text = merge.render(project, view) + "".join(warnings(view, registered(project + ".conf")))
sys.stdout.buffer.write(text.encode("utf-8"))
