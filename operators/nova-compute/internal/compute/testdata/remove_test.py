"""Runs remove.py against a fake of Nova and Placement, with Python's own modules only."""
import importlib.util
import sys
import types
import unittest
from unittest import mock


class EndpointNotFound(Exception):
    pass


class InternalServerError(Exception):
    pass


exceptions = types.SimpleNamespace(EndpointNotFound=EndpointNotFound, ClientException=Exception)
sys.modules["keystoneauth1"] = types.SimpleNamespace(adapter=None, exceptions=exceptions, loading=None)
sys.modules["oslo_config"] = types.SimpleNamespace(cfg=None)
spec = importlib.util.spec_from_file_location("remove", "remove.py")
remove = importlib.util.module_from_spec(spec)
spec.loader.exec_module(remove)

HOST, OWNER = "compute-0", "cloud/fake"
DISABLED = "NovaCompute cloud/fake is being deleted"
UNKNOWN = "the database of a cell does not answer Nova, for example of the cell of host compute-0"


class Answer:
    def __init__(self, status_code=200, text="", **body):
        self.status_code, self.text, self.ok, self.body = status_code, text, status_code < 400, body

    def json(self):
        return self.body


class Cloud:
    """Nova and Placement with the host compute-0 in one cell and the host other in another. Its
    writes are recorded."""

    def __init__(self):
        self.services = [
            {"id": "id-" + host, "host": host, "status": "enabled", "disabled_reason": None} for host in (HOST, "other")]
        self.servers, self.migrations, self.allocations = {HOST: []}, {HOST: []}, {HOST: {}}
        self.hypervisors = [{"id": h, "hypervisor_hostname": h, "service": {"host": h}} for h in ("other", HOST)]
        self.refusals, self.writes, self.slept, self.at = {}, [], 0, {}
        self.down = ""  # the host of the cell whose database does not answer
        self.down_at = {}  # the same, during the first requests of a path

    def get_endpoint(self):
        return "http://nova"

    def sleep(self, seconds):
        """Passes time: at has what happens after a number of seconds."""
        before, self.slept = self.slept, self.slept + seconds
        for moment, happens in self.at.items():
            if before < moment <= self.slept:
                happens()

    def get(self, path, params=None, microversion="2.53"):
        """Answers as Nova does: some lists leave out a cell that is down, and other requests fail."""
        down = self.down_at[path].pop(0) if self.down_at.get(path) else self.down
        if path == "/os-services":
            known = [dict(s) for s in self.services if s["host"] != down]
            unknown = [{"host": s["host"], "status": "UNKNOWN"} for s in self.services if s["host"] == down]
            return Answer(services=known + unknown if microversion == "2.69" else known)
        if path == "/servers":
            return Answer(servers=[{"id": s} for s in self.servers[params["host"]] if params["host"] != down])
        if down:
            raise InternalServerError
        if path == "/os-migrations":
            return Answer(migrations=[{"instance_uuid": "server-m", "status": s} for s in self.migrations[params["host"]]])
        if path == "/os-hypervisors/detail":  # in pages of one
            ids = [None] + [h["id"] for h in self.hypervisors]
            return Answer(hypervisors=self.hypervisors[ids.index(params.get("marker")):][:1])
        if path.startswith("/os-hypervisors/"):
            node = next(h for h in self.hypervisors if path == "/os-hypervisors/" + h["id"])
            servers = self.servers[node["service"]["host"]] if params == {"with_servers": "true"} else []
            return Answer(hypervisor=dict(node, servers=[{"uuid": s} for s in servers]) if servers else node)
        if path == "/resource_providers":
            return Answer(resource_providers=[{"uuid": "rp-" + params["name"]}] if params["name"] in self.allocations else [])
        provider = path.removeprefix("/resource_providers/rp-").removesuffix("/allocations")
        return Answer(allocations=self.allocations[provider])

    def put(self, path, json):
        self.writes.append("disable " + path)
        next(s for s in self.services if path == "/os-services/" + s["id"]).update(json)

    def delete(self, path, raise_exc):
        host = path.removeprefix("/resource_providers/rp-")
        status = 409 if self.allocations.get(host) else self.refusals.get(path, 204)
        if status < 400:
            self.writes.append("delete " + path)
        return Answer(status, "Service id-%s is in use." % HOST)


class RemoveTest(unittest.TestCase):
    def setUp(self):
        self.cloud = Cloud()
        for name, fake in ("connect", lambda region: (self.cloud, self.cloud)), ("time.sleep", self.cloud.sleep):
            patch = mock.patch("remove." + name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def refused(self, step, message):
        with self.assertRaises(SystemExit) as refusal:
            remove.main(step, OWNER, "", HOST)
        self.assertIn(message, str(refusal.exception.code))

    def disabled_before(self):
        """The first Job has failed: the next ones find the service disabled."""
        self.cloud.services[0].update(status="disabled", disabled_reason=DISABLED)

    def test_a_host_with_a_server_is_not_empty(self):
        self.cloud.servers[HOST] = ["server-a", "server-b"]
        self.refused("empty", "servers on host compute-0: 2, for example server-a; migrate or delete them")
        self.assertEqual(self.cloud.writes, ["disable /os-services/id-compute-0"], "no new server arrives")

    def test_a_host_with_an_unfinished_migration_is_not_empty(self):
        for status in "accepted", "queued", "preparing", "running", "migrating", "post-migrating", "finished", "confirming":
            with self.subTest(status):
                self.cloud.migrations[HOST] = ["confirmed", status]
                self.refused("empty", "migrations of host compute-0: 1, for example of server server-m, which is %s" % status)

    def test_a_host_with_ended_migrations_is_empty(self):
        self.cloud.migrations[HOST] = ["cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"]
        self.assertEqual(remove.main("empty", OWNER, "", HOST), HOST)

    def test_a_server_that_was_scheduled_before_is_counted(self):
        self.cloud.at[10] = lambda: self.cloud.servers.update({HOST: ["late"]})
        self.refused("empty", "servers on host compute-0: 1, for example late")

    def test_the_next_job_waits_for_the_end_of_a_migration(self):
        self.disabled_before()
        self.cloud.migrations[HOST] = ["running"]
        self.cloud.at[30] = lambda: self.cloud.migrations.update({HOST: ["completed"]})
        self.assertEqual(remove.main("empty", OWNER, "", HOST), HOST)
        self.assertEqual((self.cloud.slept, self.cloud.writes), (30, []))

    def test_the_next_job_fails_after_a_minute(self):
        self.disabled_before()
        self.cloud.migrations[HOST] = ["running"]
        self.refused("empty", "migrations of host compute-0: 1")
        self.assertEqual(self.cloud.slept, 55)

    def test_a_server_is_counted_though_its_cell_does_not_answer_for_an_instant(self):
        self.cloud.servers[HOST] = ["server-a"]
        self.cloud.down_at["/servers"] = [HOST]
        self.refused("empty", "servers on host compute-0: 1, for example server-a")

    def test_a_host_without_a_node_is_not_empty_while_its_cell_does_not_answer(self):
        self.cloud.hypervisors.pop()
        self.cloud.servers[HOST] = ["server-a"]
        self.cloud.down_at = {"/servers": [HOST], "/os-services": ["", HOST]}
        self.refused("empty", UNKNOWN)

    def test_hosts_of_an_earlier_job_are_unknown_while_their_cell_does_not_answer(self):
        self.disabled_before()
        self.cloud.down = HOST
        with self.assertRaises(SystemExit) as refusal:
            remove.main("empty", OWNER, "")
        self.assertIn(UNKNOWN, refusal.exception.code)

    def test_nothing_is_deleted_while_a_cell_does_not_answer(self):
        self.cloud.down_at["/os-services"] = [HOST]
        self.refused("unregister", UNKNOWN)
        self.assertEqual(self.cloud.writes, [])

    def test_no_allocation_is_called_superfluous_while_its_server_is_on_the_host(self):
        self.cloud.servers[HOST] = ["server-a"]
        self.cloud.allocations[HOST] = {"server-a": {}}
        self.refused("unregister", "servers on host compute-0: 1, for example server-a")
        self.assertEqual(self.cloud.writes, [])

    def test_allocations_keep_the_service_and_the_resource_provider(self):
        self.cloud.allocations[HOST] = {"server-b": {}, "server-a": {}}
        self.refused("unregister", "Placement has allocations on host compute-0: 2, for example of server-a")
        self.assertEqual(self.cloud.writes, [])

    def test_a_node_may_have_another_name_than_its_host(self):
        self.cloud.hypervisors[1]["hypervisor_hostname"] = "node.example.org"
        self.cloud.allocations = {"node.example.org": {"migration": {}}}
        self.refused("unregister", "Placement has allocations on host node.example.org: 1, for example of migration")
        self.cloud.allocations["node.example.org"] = {}
        self.assertEqual(remove.main("unregister", OWNER, "", HOST), "done")
        self.assertEqual(self.cloud.writes, ["delete /os-services/id-compute-0", "delete /resource_providers/rp-node.example.org"])

    def test_a_service_that_nova_keeps_keeps_the_resource_provider(self):
        self.cloud.refusals["/os-services/id-compute-0"] = 409
        self.refused("unregister", "Nova refuses to delete the compute service of host compute-0: Service id-compute-0 is in use.")
        self.assertEqual(self.cloud.writes, [])

    def test_unregister_deletes_what_is_left(self):
        removed = ["delete /os-services/id-compute-0", "delete /resource_providers/rp-compute-0"]
        for refusals, writes in ({}, removed), ({"/os-services/id-compute-0": 404}, removed[1:]):
            with self.subTest(refusals):
                self.cloud.refusals, self.cloud.writes = refusals, []
                self.assertEqual(remove.main("unregister", OWNER, "", HOST), "done")
                self.assertEqual(self.cloud.writes, writes)

    def test_hosts_that_an_earlier_job_has_disabled_belong_to_the_compute(self):
        self.disabled_before()
        self.assertEqual(remove.main("empty", OWNER, ""), HOST)

    def test_a_cloud_without_compute_api(self):
        self.cloud.get_endpoint = mock.Mock(side_effect=EndpointNotFound)
        self.assertEqual(remove.main("empty", OWNER, "", HOST), "absent")
        self.assertEqual(self.cloud.writes, [])


class RegionsTest(unittest.TestCase):
    """A catalog of two regions. Each has a Nova with a host of the same name."""

    def setUp(self):
        self.one, self.two = Cloud(), Cloud()
        self.catalog = {("compute", "RegionOne"): self.one, ("compute", "RegionTwo"): self.two,
                        ("placement", "RegionTwo"): self.two}
        self.adapters = []
        self.placement = {"region_name": "RegionTwo"}  # the section of the configuration
        conf = mock.MagicMock(placement=types.SimpleNamespace(**self.placement))
        conf.set_default = lambda name, value, group: self.placement.setdefault(name, value)
        loading = mock.MagicMock()
        loading.load_auth_from_conf_options = lambda _, section: "account of " + section
        loading.load_session_from_conf_options = lambda _, section, auth, timeout: (section, auth, timeout)
        loading.load_adapter_from_conf_options = lambda _, section, session: self.adapt(
            session, interface=self.placement.pop("valid_interfaces"), **self.placement)
        for name, fake in (("cfg", types.SimpleNamespace(ConfigOpts=lambda: conf)), ("loading", loading),
                           ("adapter", types.SimpleNamespace(Adapter=self.adapt)), ("time.sleep", lambda _: None)):
            patch = mock.patch("remove." + name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def adapt(self, session, **endpoint):
        self.adapters.append((session, endpoint))
        absent = mock.Mock(get_endpoint=mock.Mock(side_effect=EndpointNotFound))
        return self.catalog.get((endpoint["service_type"], endpoint["region_name"]), absent)

    def test_the_servers_of_novas_own_region_are_counted(self):
        self.one.servers[HOST] = ["server-a"]
        for catalog in self.catalog, {("compute", "RegionOne"): self.one}:
            with self.subTest(catalog), mock.patch.object(self, "catalog", catalog):
                with self.assertRaises(SystemExit) as refusal:
                    remove.main("empty", OWNER, "RegionOne", HOST)
                self.assertIn("servers on host compute-0: 1, for example server-a", refusal.exception.code)

    def test_another_nova_keeps_its_hosts(self):
        self.assertEqual(remove.main("empty", OWNER, "RegionOne", HOST), HOST)
        self.assertEqual(remove.main("unregister", OWNER, "RegionOne", HOST), "done")
        self.assertEqual(self.one.writes, ["disable /os-services/id-compute-0", "delete /os-services/id-compute-0"])
        self.assertEqual(self.two.writes, ["delete /resource_providers/rp-compute-0"], "Placement")

    def test_nova_is_in_the_region_of_placement_if_its_own_is_unknown(self):
        self.assertEqual(remove.main("empty", OWNER, "", HOST), HOST)
        self.assertEqual(self.two.writes, ["disable /os-services/id-compute-0"])

    def test_placement_is_found_where_the_compute_finds_it(self):
        stated = {"service_type": "placement-two", "valid_interfaces": ["public"],
                  "endpoint_override": "https://placement.example.org"}
        both = ["internal", "public"]
        for section, endpoint in (({}, {"service_type": "placement", "interface": both}),
                                  (stated, dict(stated, interface=["public"]))):
            with self.subTest(section):
                endpoint.pop("valid_interfaces", None)
                self.placement.update(section)
                remove.connect("RegionOne")
                self.assertIn((("placement", "account of placement", 30), dict(endpoint, region_name="RegionTwo")), self.adapters)


if __name__ == "__main__":
    sys.modules["remove"] = remove
    unittest.main()
