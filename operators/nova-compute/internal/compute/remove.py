"""Usage: remove.py empty|unregister HOST

empty       disables the compute service of the host, and fails while servers are on the host.
unregister  deletes the service, with the mapping and the resource provider of the host, and
            fails while anything remains.

The configuration of the compute has the account. The last line of the output is the result:
"absent" if the catalog has no compute API, of which nothing can then be removed.
"""
import sys
import time

from keystoneauth1 import adapter, exceptions, loading
from oslo_config import cfg

SECTION = "service_user"
REASON = "NovaCompute is being deleted"
SETTLE_SECONDS = 15  # a server that was scheduled before the service was disabled arrives
COUNTS, COUNT_SECONDS = 12, 5  # before the next Job; the first Job counts once


def connect():
    """Return a function that returns the adapter of a service in the catalog."""
    conf = cfg.ConfigOpts()
    loading.register_auth_conf_options(conf, SECTION)
    loading.register_session_conf_options(conf, SECTION)
    loading.register_adapter_conf_options(conf, "placement")
    conf([], project="nova")
    auth = loading.load_auth_from_conf_options(conf, SECTION)
    session = loading.load_session_from_conf_options(conf, SECTION, auth=auth, timeout=30)
    return lambda kind, version=None: adapter.Adapter(
        session, service_type=kind, interface=["internal", "public"],
        region_name=conf.placement.region_name, default_microversion=version)


def empty(nova, services, host):
    counts = COUNTS
    for service in services:
        if service["status"] != "disabled" or service["disabled_reason"] != REASON:
            nova.put("/os-services/" + service["id"], json={"status": "disabled", "disabled_reason": REASON})
            time.sleep(SETTLE_SECONDS)
            counts = 1
    for again in reversed(range(counts)):
        servers = nova.get("/servers", params={"all_tenants": "true", "host": host}).json()["servers"]
        if not servers:
            return
        time.sleep(COUNT_SECONDS if again else 0)
    sys.exit("servers on host %s: %d, for example %s; migrate or delete them: openstack server list "
             "--all-projects --host %s" % (host, len(servers), servers[0]["id"], host))


def unregister(nova, services, placement, host):
    for service in services:
        answer = nova.delete("/os-services/" + service["id"], raise_exc=False)
        if not answer.ok and answer.status_code != 404:
            sys.exit("Nova refuses to delete the compute service of host %s: %s" % (host, answer.text))
    left = placement.get("/resource_providers", params={"name": host}).json()["resource_providers"]
    if left:
        sys.exit("Placement still has the resource provider of host %s: openstack resource provider "
                 "delete %s" % (host, left[0]["uuid"]))


def main(step, host):
    catalog = connect()
    nova = catalog("compute", "2.53")
    try:
        nova.get_endpoint()
    except exceptions.EndpointNotFound:
        print("absent")
        return
    services = nova.get("/os-services", params={"binary": "nova-compute", "host": host}).json()["services"]
    if step == "empty":
        empty(nova, services, host)
    else:
        unregister(nova, services, catalog("placement"), host)
    print("done")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except exceptions.ClientException as error:
        sys.exit("%s: %s" % (type(error).__name__, error))
