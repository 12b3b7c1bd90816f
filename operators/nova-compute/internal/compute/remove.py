"""Usage: remove.py empty|unregister OBJECT REGION [HOST...]

empty       disables the compute services of the hosts, and fails while servers or unfinished
            migrations are on a host. Its result has the hosts, "none" for none.
unregister  deletes the services of the hosts, and those that empty has disabled for OBJECT,
            with the mappings and the resource providers, and fails while a resource provider has
            allocations.

The configuration of the compute has the accounts. REGION is that of the compute API; if it is
empty, that of Placement. The output is the result: "absent" if the catalog has no compute API, of
which nothing can then be removed.

Nova leaves a cell whose database does not answer out of its list of servers, without an error.
So an empty list is not enough to stop a compute, see list_services and servers_on.
"""
import sys
import time

from keystoneauth1 import adapter, exceptions, loading
from oslo_config import cfg

NOVA, PLACEMENT = "service_user", "placement"  # sections of the configuration
INTERFACES = ["internal", "public"]  # Nova's default for Placement
REASON = "NovaCompute %s is being deleted"
SETTLE_SECONDS = 15  # a server that was scheduled before the service was disabled arrives
COUNTS, COUNT_SECONDS = 12, 5  # before the next Job; the first Job counts once
RESULT_BYTES = 4000  # a termination message has at most 4096
ENDED = {"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"}


def connect(region):
    """Return the adapters of Nova and Placement. Placement is found as nova-compute finds it."""
    conf = cfg.ConfigOpts()
    for section in NOVA, PLACEMENT:
        loading.register_auth_conf_options(conf, section)
        loading.register_session_conf_options(conf, section)
    loading.register_adapter_conf_options(conf, PLACEMENT, include_deprecated=False)
    conf.set_default("service_type", "placement", group=PLACEMENT)
    conf.set_default("valid_interfaces", INTERFACES, group=PLACEMENT)
    conf([], project="nova")

    def session(section):
        auth = loading.load_auth_from_conf_options(conf, section)
        return loading.load_session_from_conf_options(conf, section, auth=auth, timeout=30)

    nova = adapter.Adapter(
        session(NOVA), service_type="compute", interface=INTERFACES,
        region_name=region or conf.placement.region_name, default_microversion="2.53")
    return nova, loading.load_adapter_from_conf_options(conf, PLACEMENT, session=session(PLACEMENT))


def list_services(nova):
    """Return the compute services, or fail if the database of a cell does not answer. With this
    microversion, Nova lists the hosts of such a cell with status UNKNOWN. They may belong to the
    compute: the reason for which a host is disabled is unknown too."""
    services = nova.get("/os-services", params={"binary": "nova-compute"}, microversion="2.69").json()["services"]
    unknown = [s["host"] for s in services if s["status"] == "UNKNOWN"]
    if unknown:
        sys.exit("the database of a cell does not answer Nova, for example of the cell of host %s: its servers "
                 "cannot be counted, and nothing is removed until it answers" % unknown[0])
    return services


def list_nodes(nova, hosts):
    """Return the nodes of the hosts. Nova fails if the database of a cell does not answer."""
    nodes, marker = [], {}
    while page := nova.get("/os-hypervisors/detail", params=marker).json()["hypervisors"]:
        nodes += [h for h in page if h["service"]["host"] in hosts]
        marker = {"marker": page[-1]["id"]}
    return nodes


def servers_on(nova, nodes):
    """Return the servers of each host that has a node, also those that the list of servers hides
    because they are deleted softly. Nova fails if the database of the cell does not answer."""
    of_host = {node["service"]["host"]: node["id"] for node in nodes}  # Nova has the host's servers for each node
    return [(host, server["uuid"]) for host, node in sorted(of_host.items()) for server in
            nova.get("/os-hypervisors/" + node, params={"with_servers": "true"}).json()["hypervisor"].get("servers", [])]


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
        migrations = [(host, migration) for host in hosts for migration in
                      nova.get("/os-migrations", params={"host": host}).json()["migrations"]
                      if migration["status"] not in ENDED]
        if not servers and not migrations:
            list_services(nova)
            servers = servers_on(nova, list_nodes(nova, hosts))
            if not servers:
                return
        time.sleep(COUNT_SECONDS if again else 0)
    if not servers:
        host, migration = migrations[0]
        sys.exit("migrations of host %s: %d, for example of server %s, which is %s; confirm, revert or "
                 "abort them" % (host, sum(h == host for h, _ in migrations), migration["instance_uuid"],
                                 migration["status"]))
    refuse(servers)


def refuse(servers):
    host = servers[0][0]
    sys.exit("servers on host %s: %d, for example %s; migrate or delete them: openstack server list "
             "--all-projects --host %s; one that this does not list is deleted softly: openstack server delete --force %s"
             % (host, sum(h == host for h, _ in servers), servers[0][1], host, servers[0][1]))


def unregister(nova, services, placement, hosts):
    nodes = list_nodes(nova, hosts)
    servers = servers_on(nova, nodes)
    if servers:
        refuse(servers)
    # libvirt names a node as its kernel does, and Ironic by a UUID. Nova deletes the service also if
    # Placement then keeps the resource provider.
    names = sorted(set(hosts).union(node["hypervisor_hostname"] for node in nodes))
    providers = [(name, provider["uuid"]) for name in names for provider in
                 placement.get("/resource_providers", params={"name": name}).json()["resource_providers"]]
    for name, provider in providers:
        consumers = sorted(placement.get("/resource_providers/%s/allocations" % provider).json()["allocations"])
        if consumers:
            sys.exit("Placement has allocations on host %s: %d, for example of %s, which is not on this host. "
                     "If no server has this ID: openstack resource provider allocation delete %s. If it is a server on "
                     "another host: openstack --os-placement-api-version 1.12 resource provider allocation unset "
                     "--provider %s %s. If it is a server on no host, delete it"
                     % (name, len(consumers), consumers[0], consumers[0], provider, consumers[0]))
    for service in services:
        answer = nova.delete("/os-services/" + service["id"], raise_exc=False)
        if not answer.ok and answer.status_code != 404:
            sys.exit("Nova refuses to delete the compute service of host %s: %s" % (service["host"], answer.text))
    for name, provider in providers:
        if placement.delete("/resource_providers/" + provider, raise_exc=False).status_code == 409:
            sys.exit("Placement keeps the resource provider of host %s" % name)


def main(step, owner, region, *hosts):
    nova, placement = connect(region)
    try:
        nova.get_endpoint()
    except exceptions.EndpointNotFound:
        return "absent"
    reason = REASON % owner
    services = [s for s in list_services(nova) if s["host"] in hosts or s["disabled_reason"] == reason]
    hosts = sorted({s["host"] for s in services}.union(hosts))
    if step == "unregister":
        unregister(nova, services, placement, hosts)
        return "done"
    empty(nova, services, reason, hosts)
    while len(" ".join(hosts)) > RESULT_BYTES:
        hosts.pop()
    return " ".join(hosts) or "none"


if __name__ == "__main__":
    try:
        print(main(*sys.argv[1:]))
    except exceptions.ClientException as error:
        sys.exit("%s: %s" % (type(error).__name__, error))
