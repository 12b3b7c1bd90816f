package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These specs check the demo's ControlPlane: its state, that it stays stable, and its changes.
var _ = Describe("The demo", Ordered, SpecPriority(3), func() {
	var nova cloud

	BeforeAll(func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		nova = signIn(ctx, demoNamespace)
	})

	It("is Ready in every kind", func(ctx SpecContext) {
		for _, kind := range asterismKinds {
			found, err := listOf(ctx, kind, demoNamespace)
			Expect(err).NotTo(HaveOccurred())
			if slices.Contains(createdKinds, kind) && kind != "NovaNoVNCProxy" { // the demo has no consoles until consoleSpecs
				Expect(found).NotTo(BeEmpty(), kind)
			}
			for i := range found {
				Expect(isReady(&found[i])).To(BeTrue(), "%s/%s: %v", kind, found[i].GetName(), conditions(&found[i]))
			}
		}
	})

	It("lists its services as up", func(ctx SpecContext) {
		// After a scale-down, the rows of the deleted pods remain.
		isGone := func(s computeService) bool { return s.State == "down" && !strings.HasSuffix(s.Host, "-0") }
		Eventually(func(g Gomega) {
			g.Expect(slices.DeleteFunc(nova.services(ctx), isGone)).To(ConsistOf(
				computeService{"nova-scheduler", "demo-scheduler-0", "up", "enabled", "internal"},
				computeService{"nova-conductor", "demo-superconductor-0", "up", "enabled", "internal"},
				computeService{"nova-conductor", "demo-cell1-conductor-0", "up", "enabled", "internal"},
				computeService{"nova-compute", "demo-cell1-fake", "up", "enabled", "nova"},
			))
		}).WithContext(ctx).Should(Succeed())
	})

	It("is in the catalog", func(ctx SpecContext) {
		const url = "http://demo-api.openstack.svc.cluster.local:8774/v2.1"
		Expect(nova.computeEndpoints(ctx)).To(And(HaveEach(And(HaveField("Region", region), HaveField("URL", url))),
			ConsistOf(HaveField("Interface", "public"), HaveField("Interface", "internal"))))
	})

	It("boots, lists and deletes a server as people type it", func(ctx SpecContext) {
		oscIn(ctx, demoNamespace, "--os-compute-api-version=2.37", "server", "create", "typed", "--image=empty", "--flavor=tiny", "--nic=none", "--wait")
		Expect(oscIn(ctx, demoNamespace, "server", "list")).To(MatchRegexp(`\| typed +\| ACTIVE +\| +\| empty +\| tiny +\|`))
		oscIn(ctx, demoNamespace, "server", "delete", "typed", "--wait")
	}, SpecTimeout(10*time.Minute))

	It("has mapped cell0 and cell1", func(ctx SpecContext) {
		Expect(cellsOf(ctx, demoNamespace, "demo")).To(ConsistOf("cell0", "cell1"))
	})

	It("passes Nova's own check", func(ctx SpecContext) {
		out, err := execIn(ctx, demoNamespace, "demo-superconductor-0", "nova-status", "upgrade", "check")
		Expect(out).To(ContainSubstring("Check: Cells v2"))
		Expect(out).NotTo(ContainSubstring("Result: Failure"))
		if err != nil {
			// The fake driver records no machine type of its server.
			Expect(err.Error()).To(ContainSubstring("exit status 1"))
			Expect(out).To(MatchRegexp(`(?s)hw_machine_type unset\s*\|\s*\|\s*Result: Warning`))
		}
	})

	It("answers only requests with a token", func(ctx SpecContext) {
		since := time.Now()
		Expect(nova.activeServers(ctx)).NotTo(BeEmpty())
		var log string
		Eventually(func() string {
			log = logsOf(ctx, apiPods, "nova-api", since)
			return log
		}).WithContext(ctx).Should(ContainSubstring("/v2.1/servers"))
		Expect(log).NotTo(MatchRegexp(`HTTP/1\.1 401|status: 401`), "the API could not validate a token")

		Expect(statusOf(ctx, "http://demo-api.openstack.svc.cluster.local:8774/v2.1/servers", nil)).To(Equal(http.StatusUnauthorized))
	})

	It("serves metadata to requests signed with the shared secret", func(ctx SpecContext) {
		const address = "http://demo-metadata.openstack.svc.cluster.local:8775"
		Expect(statusOf(ctx, address+"/", nil)).To(Equal(http.StatusOK))
		id := nova.activeServers(ctx)[0].ID
		shared := secret(ctx, demoNamespace, "demo-metadata")["sharedSecret"]
		status, _ := nova.instanceOf(ctx, address, id, "wrong")
		Expect(status).To(Equal(http.StatusForbidden))
		status, found := nova.instanceOf(ctx, address, id, shared)
		Expect(status).To(Equal(http.StatusOK))
		Expect(found).To(Equal(id))
	})

	It("is available with the services of 1,500 compute hosts", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			execute(ctx, demoNamespace, "DELETE FROM demo_cell1.services WHERE topic = 'e2e'")
		})
		execute(ctx, demoNamespace, "INSERT INTO demo_cell1.services (created_at, host, `binary`, topic, report_count, disabled, forced_down, deleted, version, uuid)"+
			" SELECT UTC_TIMESTAMP(), CONCAT('e2e-', seq), 'nova-compute', 'e2e', 1, 0, 0, 0, (SELECT MAX(version) FROM demo_cell1.services), UUID() FROM demo_cell1.seq_1_to_1500")
		since := time.Now()
		Expect(len(nova.services(ctx))).To(BeNumerically(">", 1500))
		Eventually(func() string { return logsOf(ctx, apiPods, "nova-api", since) }).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(
			MatchRegexp(`/v2\.1/os-services\?binary=nova-conductor.*HTTP/1\.1 200`), "the operator's request")
		Consistently(func(g Gomega) { // the operator reads the answer
			available := conditionOf(read(ctx, "Nova", demoNamespace, "demo"), "Available")
			g.Expect(available.status).To(Equal("True"), available.message)
		}).WithContext(ctx).WithTimeout(5 * time.Second).WithPolling(time.Second).Should(Succeed())
	})

	It("runs a server in cell1", func(ctx SpecContext) {
		Expect(nova.activeServers(ctx)).To(ContainElement(HaveField("Name", "demo")))
		Expect(query(ctx, demoNamespace, "SELECT vm_state FROM demo_cell1.instances WHERE hostname = 'demo' AND deleted = 0")).To(ContainElement("active"))
	})

	It("has a PodDisruptionBudget for each service with two pods", func(ctx SpecContext) {
		services := []string{"api", "metadata", "scheduler", "superconductor"}
		DeferCleanup(func(ctx SpecContext) { scaleServices(ctx, 1, services) })
		scaleServices(ctx, 2, services)
		budgets := func() []policyv1.PodDisruptionBudget {
			var found policyv1.PodDisruptionBudgetList
			Expect(k8s.List(ctx, &found, client.InNamespace(demoNamespace))).To(Succeed())
			return found.Items
		}
		Expect(budgets()).To(HaveLen(len(services)))
		scaleServices(ctx, 1, services)
		Expect(budgets()).To(BeEmpty())
	}, SpecTimeout(12*time.Minute))

	snippetSpecs()
	driftSpecs()
	computeSpecs()
	consoleSpecs()
	ironicSpecs()
})

// scaleServices scales services of the demo's ControlPlane, and waits until all are
// Ready and no pod is being deleted.
func scaleServices(ctx context.Context, replicas int, services []string) {
	GinkgoHelper()
	sizes := map[string]any{}
	for _, service := range services {
		sizes[service] = map[string]any{"replicas": replicas}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"nova": sizes}})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Patch(ctx, object("ControlPlane", demoNamespace, "demo"), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(tester))).To(Succeed())
	awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	awaitSettled(ctx, demoNamespace)
	Eventually(func() []corev1.Pod { // a pod of the API answers for ten seconds after its deletion
		return slices.DeleteFunc(podsOf(ctx, demoNamespace, nil), func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil })
	}).WithContext(ctx).Should(BeEmpty(), "pods that are being deleted")
}

// statusOf returns the HTTP status of a URL.
func statusOf(ctx context.Context, url string, header http.Header) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	if header != nil {
		request.Header = header
	}
	response, err := httpClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}
