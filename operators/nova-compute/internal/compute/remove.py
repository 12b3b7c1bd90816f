"""Usage: remove.py empty|unregister OBJECT [HOST...]

empty       disables the compute services of the hosts, and fails while servers are on a host.
unregister  deletes the services of the hosts, and those that empty has disabled for OBJECT,
            with the mappings and the resource providers, and fails while anything remains.

The configuration of the compute has the account. The last line of the output is the result:
"absent" if the catalog has no compute API, of which nothing can then be removed.
"""
import sys
import time

from keystoneauth1 import adapter, exceptions, loading
from oslo_config import cfg

SECTION = "service_user"
REASON = "NovaCompute %s is being deleted"
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


def empty(nova, services, reason, hosts):
    counts = COUNTS
    for service in services:
        if service["status"] != "disabled" or service["disabled_reason"] != reason:
            nova.put("/os-services/" + service["id"], json={"status": "disabled", "disabled_reason": reason})
            counts = 1
    if counts == 1:
        time.sleep(SETTLE_SECONDS)
    for again in reversed(range(counts)):
        servers = [(host, server["id"]) for host in hosts for server in
                   nova.get("/servers", params={"all_tenants": "true", "host": host}).json()["servers"]]
        if not servers:
            return
        time.sleep(COUNT_SECONDS if again else 0)
    host = servers[0][0]
    sys.exit("servers on host %s: %d, for example %s; migrate or delete them: openstack server list "
             "--all-projects --host %s" % (host, sum(h == host for h, _ in servers), servers[0][1], host))


def unregister(nova, services, placement, hosts):
    for service in services:
        answer = nova.delete("/os-services/" + service["id"], raise_exc=False)
        if not answer.ok and answer.status_code != 404:
            sys.exit("Nova refuses to delete the compute service of host %s: %s" % (service["host"], answer.text))
    for host in sorted({s["host"] for s in services}.union(hosts)):
        left = placement.get("/resource_providers", params={"name": host}).json()["resource_providers"]
        if left:
            sys.exit("Placement still has the resource provider of host %s: openstack resource provider "
                     "delete %s" % (host, left[0]["uuid"]))


def main(step, owner, *hosts):
    catalog = connect()
    nova = catalog("compute", "2.53")
    try:
        nova.get_endpoint()
    except exceptions.EndpointNotFound:
        print("absent")
        return
    reason = REASON % owner
    services = [s for s in nova.get("/os-services", params={"binary": "nova-compute"}).json()["services"]
                if s["host"] in hosts or s["disabled_reason"] == reason]
    if step == "empty":
        empty(nova, services, reason, hosts)
    else:
        unregister(nova, services, catalog("placement"), hosts)
    print("done")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except exceptions.ClientException as error:
        sys.exit("%s: %s" % (type(error).__name__, error))
