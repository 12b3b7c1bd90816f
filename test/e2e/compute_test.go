package e2e

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// answering is a Pod with a Service of the same name, in which a program in Python answers
// requests.
const answering = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app.kubernetes.io/name: %[1]s}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: %[1]s
    image: asterism.dev/demo/openstack:trixie
    imagePullPolicy: IfNotPresent
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
    command: [python3, -uc, %[2]q]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app.kubernetes.io/name: %[1]s}
  ports: [{port: 8080}]
`

// answer serves the function answer(path, query), which returns headers and an object.
const answer = `
import http.server, json, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        headers, content = answer(url.path.rstrip("/"), dict(urllib.parse.parse_qsl(url.query)))
        body = json.dumps(content).encode()
        self.send_response(200)
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
`

// neutron has no ports. Nova asks for them when it deletes a server.
const neutron = `
def answer(path, query):
    return {}, {path.rsplit("/", 1)[-1].replace("-", "_"): []}
` + answer

// ironic has two nodes in one conductor group, and one in another.
const ironic = `
link = {"rel": "self", "href": "http://ironic.` + demoNamespace + `.svc.cluster.local:8080/v1/"}
version = {"id": "v1", "status": "CURRENT", "version": "1.78", "min_version": "1.1", "links": [link]}
nodes = [{"uuid": uuid, "conductor_group": group, "power_state": "power off", "target_power_state": None,
          "provision_state": "available", "target_provision_state": None, "last_error": None, "maintenance": False,
          "properties": {"cpus": 8, "memory_mb": 4096, "local_gb": 100, "cpu_arch": "x86_64"}, "instance_uuid": None,
          "traits": [], "resource_class": "baremetal"}
         for uuid, group in [("` + nodeOfRack1 + `", "rack1"), ("` + secondOfRack1 + `", "rack1"), ("` + nodeOfRack2 + `", "rack2")]]
def answer(path, query):
    headers = {"X-OpenStack-Ironic-API-Version": "1.78", "X-OpenStack-Ironic-API-Minimum-Version": "1.1",
               "X-OpenStack-Ironic-API-Maximum-Version": "1.78", "OpenStack-API-Version": "baremetal 1.78"}
    if path == "":
        return headers, {"name": "OpenStack Ironic API", "default_version": version, "versions": [version]}
    if path == "/v1":
        return headers, {"id": "v1", "version": version, "links": [link]}
    group = query.get("conductor_group")
    print("listed", path, "of group", group)
    return headers, {"nodes": [n for n in nodes if group in (None, n["conductor_group"])
                               and query.get("instance_uuid") in (None, n["instance_uuid"])]}
` + answer

const (
	nodeOfRack1   = "a1a1a1a1-1111-4111-8111-111111111111"
	secondOfRack1 = "a2a2a2a2-1111-4111-8111-111111111111"
	nodeOfRack2   = "b2b2b2b2-2222-4222-8222-222222222222"
)

// ironicCompute is a NovaCompute beside the demo, with the Secret of the demo's cell.
const ironicCompute = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaCompute
metadata: {name: e2e-rack1}
spec:
  driver: Ironic
  ironic: {secretRef: {name: e2e-ironic}, conductorGroup: rack1}
  containerImage: asterism.dev/demo/openstack:trixie
  computeConfigSecretRef: {name: demo-cell1-compute-config}
`

// fakeCompute returns a compute of a cell that can delete its servers in a cloud without Glance: it
// uses the fake of Neutron in a namespace.
func fakeCompute(namespace string) string {
	return fmt.Sprintf(`{"name": "fake", "driver": "Fake", "customServiceConfig": "[glance]\nendpoint_override = http://127.0.0.1:9\n[neutron]\nendpoint_override = http://neutron.%s.svc.cluster.local:8080\n"}`, namespace)
}

// computeSpecs add a compute to the cell of the demo, and remove it.
func computeSpecs() {
	const spare, spareCompute = "demo-cell1-spare", `{"name": "spare", "driver": "Fake"}`

	It("keeps a compute that leaves the list while it has a server, and removes a retired one without", func(ctx SpecContext) {
		nova := signIn(ctx, demoNamespace)
		changeComputes(ctx, "add", "-", spareCompute)
		awaitMapped(ctx, 2)
		awaitReady(ctx, "NovaCompute", demoNamespace, spare)
		nova.bootOn(ctx, spare)

		changeComputes(ctx, "remove", "1", "null")
		awaitWithin(ctx, patience, "NovaCell", demoNamespace, "demo-cell1", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "ComputesReady").message).To(ContainSubstring("NovaCompute " + spare + " is not in computes of the cell, and has servers: 1"))
		})
		changeComputes(ctx, "add", "-", spareCompute)
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		Expect(nova.services(ctx)).To(ContainElement(computeService{"nova-compute", spare, "up", "enabled", "nova"}), "nothing has happened to the compute")

		changeComputes(ctx, "add", "1/state", `"Retired"`)
		refused := ContainSubstring("servers on host " + spare + ": 1, for example ")
		awaitWithin(ctx, patience, "NovaCompute", demoNamespace, spare, func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Ready").message).To(refused)
		})
		awaitWithin(ctx, patience, "NovaCell", demoNamespace, "demo-cell1", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "ComputesReady").message).To(refused)
		})
		Expect(nova.services(ctx)).To(ContainElement(computeService{"nova-compute", spare, "up", "disabled", "nova"}), "the compute still works for its server")

		nova.deleteServersOn(ctx, spare)
		awaitGone(ctx, "NovaCompute", demoNamespace, spare)
		expectUnregistered(ctx, nova, spare)
		changeComputes(ctx, "remove", "1", "null")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")

		By("removing an empty compute in one change, after it has come back and after its mapping was lost")
		changeComputes(ctx, "add", "-", spareCompute)
		awaitMapped(ctx, 2)
		execute(ctx, demoNamespace, "DELETE FROM demo_api.host_mappings WHERE host = '"+spare+"'")
		Eventually(func() []string {
			return query(ctx, demoNamespace, "SELECT host FROM demo_api.host_mappings WHERE host = ?", spare)
		}).WithContext(ctx).Should(ConsistOf(spare))
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		changeComputes(ctx, "remove", "1", "null")
		awaitGone(ctx, "NovaCompute", demoNamespace, spare)
		expectUnregistered(ctx, nova, spare)
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	}, SpecTimeout(15*time.Minute))
}

// ironicSpecs run a compute with driver Ironic.
func ironicSpecs() {
	const name, account = "e2e-rack1", "e2e-ironic"

	It("runs a compute for the nodes of one conductor group of Ironic, and removes it", func(ctx SpecContext) {
		nova := signIn(ctx, demoNamespace)
		serve(ctx, demoNamespace, "ironic", ironic)
		nova.makeUser(ctx, account, "created by the test")
		setSecret(ctx, demoNamespace, account, map[string]string{
			"user": account, "password": canaryIdentity, "authURL": secret(ctx, demoNamespace, "keystone-admin")["authURL"],
			"endpoint": "http://ironic." + demoNamespace + ".svc.cluster.local:8080",
		})
		DeferCleanup(func(ctx SpecContext) {
			nova.removeUser(ctx, account)
			kubectl(ctx, "delete", "secret/"+account, "--namespace="+demoNamespace)
		})
		since := time.Now()
		apply(ctx, demoNamespace, ironicCompute)
		awaitReady(ctx, "NovaCompute", demoNamespace, name)
		awaitMapped(ctx, 2)
		providers := func() []string {
			return query(ctx, demoNamespace, "SELECT name FROM placement.resource_providers WHERE name IN (?, ?, ?)", nodeOfRack1, secondOfRack1, nodeOfRack2)
		}
		Eventually(providers).WithContext(ctx).WithTimeout(patience).Should(ConsistOf(nodeOfRack1, secondOfRack1))
		Expect(query(ctx, demoNamespace, "SELECT hypervisor_hostname FROM demo_cell1.compute_nodes WHERE host = ? AND deleted = 0", name)).To(ConsistOf(nodeOfRack1, secondOfRack1))
		requests := logsOf(ctx, map[string]string{"app.kubernetes.io/name": "ironic"}, "ironic", since)
		Expect(requests).To(ContainSubstring("listed /v1/nodes of group rack1"))
		Expect(requests).NotTo(ContainSubstring("of group rack2"))

		kubectl(ctx, "delete", "novacompute", name, "--namespace="+demoNamespace, "--wait=false")
		awaitGone(ctx, "NovaCompute", demoNamespace, name)
		expectUnregistered(ctx, nova, name)
		Expect(providers()).To(BeEmpty())
	}, SpecTimeout(15*time.Minute))
}

// serve runs a program that answers, for the time of the spec.
func serve(ctx context.Context, namespace, name, program string) {
	GinkgoHelper()
	apply(ctx, namespace, fmt.Sprintf(answering, name, program))
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "delete", "pod/"+name, "service/"+name, "--namespace="+namespace)
	})
	kubectl(ctx, "wait", "pod/"+name, "--namespace="+namespace, "--for=condition=Ready", "--timeout=10m")
}

// changeComputes changes the list of computes of the demo's cell by a JSON patch.
func changeComputes(ctx context.Context, operation, index, value string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "controlplane/demo", "--namespace="+demoNamespace, "--type=json",
		fmt.Sprintf(`--patch=[{"op": %q, "path": "/spec/nova/cells/0/computes/%s", "value": %s}]`, operation, index, value))
}

func awaitMapped(ctx context.Context, hosts int64) {
	GinkgoHelper()
	awaitWithin(ctx, patience, "NovaCell", demoNamespace, "demo-cell1", func(g Gomega, o *unstructured.Unstructured) {
		mapped, _, _ := unstructured.NestedInt64(o.Object, "status", "hosts", "mapped")
		g.Expect(mapped).To(Equal(hosts))
	})
}

// expectUnregistered expects that nothing of a host is left in Nova and Placement.
func expectUnregistered(ctx context.Context, nova cloud, host string) {
	GinkgoHelper()
	Expect(nova.services(ctx)).NotTo(ContainElement(HaveField("Host", host)))
	Expect(query(ctx, demoNamespace, "SELECT host FROM demo_api.host_mappings WHERE host = ?", host)).To(BeEmpty())
	Expect(query(ctx, demoNamespace, "SELECT name FROM placement.resource_providers WHERE name = ?", host)).To(BeEmpty())
}

func (c cloud) serversOn(ctx context.Context, host string) []server {
	GinkgoHelper()
	var found struct{ Servers []server }
	c.get(ctx, "servers?all_tenants=true&status=ACTIVE&host="+url.QueryEscape(host), &found)
	return found.Servers
}

func (c cloud) deleteServersOn(ctx context.Context, host string) {
	GinkgoHelper()
	for _, server := range c.serversOn(ctx, host) {
		compute := c.compute()
		_, err := compute.Delete(ctx, compute.ServiceURL("servers", server.ID), nil)
		Expect(err).NotTo(HaveOccurred())
	}
}

// bootOn boots a server on a host, and waits until it is ACTIVE.
func (c cloud) bootOn(ctx context.Context, host string) {
	GinkgoHelper()
	others := len(c.serversOn(ctx, host))
	request := serverRequest(host, c.flavor(ctx))
	request["availability_zone"] = "nova:" + host
	_, err := c.boot(ctx, request)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() []server { return c.serversOn(ctx, host) }).WithContext(ctx).Should(HaveLen(others + 1))
}

// flavor returns the ID of a flavor, which must exist.
func (c cloud) flavor(ctx context.Context) string {
	GinkgoHelper()
	var flavors struct{ Flavors []server }
	c.get(ctx, "flavors", &flavors)
	Expect(flavors.Flavors).NotTo(BeEmpty())
	return flavors.Flavors[0].ID
}

// serverRequest describes a server without an image or a network.
func serverRequest(name, flavor string) map[string]any {
	return map[string]any{
		"name": name, "flavorRef": flavor, "networks": "none",
		"block_device_mapping_v2": []map[string]any{{"boot_index": 0, "source_type": "blank", "destination_type": "local"}},
	}
}

// boot requests a server, and returns its ID.
func (c cloud) boot(ctx context.Context, request map[string]any) (id string, err error) {
	compute := c.compute()
	var created struct{ Server server }
	_, err = compute.Post(ctx, compute.ServiceURL("servers"), map[string]any{"server": request}, &created, &gophercloud.RequestOpts{OkCodes: []int{202}})
	return created.Server.ID, err
}
