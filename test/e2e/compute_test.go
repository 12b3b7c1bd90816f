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

// neutron answers for a Neutron without ports, which Nova asks when it deletes a server.
const neutron = `
apiVersion: v1
kind: Pod
metadata: {name: neutron, labels: {app.kubernetes.io/name: neutron}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: neutron
    image: asterism.dev/demo/openstack:bookworm
    imagePullPolicy: IfNotPresent
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
    command:
    - python3
    - -uc
    - |
      import http.server, json
      class Handler(http.server.BaseHTTPRequestHandler):
          def do_GET(self):
              name = self.path.split("?")[0].rsplit("/", 1)[-1]
              body = json.dumps({name.replace("-", "_"): []}).encode()
              self.send_response(200)
              self.send_header("Content-Type", "application/json")
              self.send_header("Content-Length", str(len(body)))
              self.end_headers()
              self.wfile.write(body)
      http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
---
apiVersion: v1
kind: Service
metadata: {name: neutron}
spec:
  selector: {app.kubernetes.io/name: neutron}
  ports: [{port: 8080}]
`

// spareCompute is a compute of the demo's cell.
const spareCompute = `{"name": "spare", "driver": "Fake", "customServiceConfig": "[glance]\nendpoint_override = http://127.0.0.1:9\n[neutron]\nendpoint_override = http://neutron.openstack.svc.cluster.local:8080\n"}`

// computeSpecs add a compute to the cell of the demo, and remove it.
func computeSpecs() {
	const spare = "demo-cell1-spare"

	It("removes a retired compute as soon as it has no server", func(ctx SpecContext) {
		nova := signIn(ctx, demoNamespace)
		apply(ctx, demoNamespace, neutron)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "pod/neutron", "service/neutron", "--namespace="+demoNamespace)
		})
		changeComputes(ctx, "add", "-", spareCompute)
		awaitMapped(ctx, 2)
		awaitReady(ctx, "NovaCompute", demoNamespace, spare)
		nova.bootOn(ctx, spare)

		changeComputes(ctx, "add", "1/retired", "true")
		refused := ContainSubstring("servers on host " + spare + ": 1, for example ")
		awaitWithin(ctx, patience, "NovaCompute", demoNamespace, spare, func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Ready").message).To(refused)
		})
		awaitWithin(ctx, patience, "NovaCell", demoNamespace, "demo-cell1", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "ComputesReady").message).To(refused)
		})
		Expect(nova.services(ctx)).To(ContainElement(computeService{"nova-compute", spare, "up", "disabled", "nova"}), "the compute still works for its server")

		for _, server := range nova.serversOn(ctx, spare) {
			compute := nova.compute()
			_, err := compute.Delete(ctx, compute.ServiceURL("servers", server.ID), nil)
			Expect(err).NotTo(HaveOccurred())
		}
		awaitGone(ctx, "NovaCompute", demoNamespace, spare)
		expectUnregistered(ctx, nova, spare)
		changeComputes(ctx, "remove", "1", "null")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	}, SpecTimeout(8*time.Minute))
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

// bootOn boots a server on a host, and waits until it is ACTIVE.
func (c cloud) bootOn(ctx context.Context, host string) {
	GinkgoHelper()
	var flavors struct{ Flavors []server }
	c.get(ctx, "flavors", &flavors)
	Expect(flavors.Flavors).NotTo(BeEmpty())
	compute := c.compute()
	_, err := compute.Post(ctx, compute.ServiceURL("servers"), map[string]any{"server": map[string]any{
		"name": host, "flavorRef": flavors.Flavors[0].ID, "networks": "none", "availability_zone": "nova:" + host,
		"block_device_mapping_v2": []map[string]any{{"boot_index": 0, "source_type": "blank", "destination_type": "local"}},
	}}, nil, &gophercloud.RequestOpts{OkCodes: []int{202}})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() []server { return c.serversOn(ctx, host) }).WithContext(ctx).Should(HaveLen(1))
}
