package packages

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("OLM", Label("olm"), Ordered, func() {
	var registry string
	var first release

	BeforeAll(func(ctx SpecContext) {
		registry = serveRegistry()
		pushOperands(registry)
		By("releasing 0.1.0")
		first = makeRelease(ctx, registry, "0.1.0", nil)
		By("starting OLM")
		installOLM(ctx, pushOLM(registry))
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
	})

	It("names a package that the catalog lacks", func(ctx SpecContext) {
		serveCatalog(ctx, pushCatalogWithout(registry, first.folder, "nova-scheduler-operator"))
		apply(ctx, subscription)
		Eventually(func() string {
			return kubectl(ctx, "get", "subscription/asterism", "--namespace", systemNamespace, `--output=jsonpath={.status.conditions[?(@.type=="ResolutionFailed")].message}`)
		}).WithContext(ctx).Should(ContainSubstring("nova-scheduler-operator"), explain(ctx))
		Expect(phases(ctx)).To(BeEmpty())
		kubectl(ctx, "delete", "subscription/asterism", "--namespace", systemNamespace)
	})

	It("installs all operators by one Subscription", func(ctx SpecContext) {
		serveCatalog(ctx, first.catalog)
		started := time.Now()
		apply(ctx, subscription)
		Eventually(func() map[string]string { return phases(ctx) }).WithContext(ctx).Should(Equal(installed("0.1.0")), explain(ctx))
		AddReportEntry("time", fmt.Sprintf("all operators Succeeded after %s", time.Since(started).Round(time.Second)))
		plans := list(ctx, "installplans", systemNamespace)
		Expect(plans).To(HaveLen(1))
		content := kubectl(ctx, "get", "installplan", plans[0].Metadata.Name, "--namespace", systemNamespace, "--output=json")
		AddReportEntry("InstallPlan", fmt.Sprintf("%d bytes", len(content)))
		Expect(len(content)).To(BeNumerically("<", 1_000_000))
	})

	It("gives operators rights in the namespaces of the OperatorGroup alone", func(ctx SpecContext) {
		expectRightsInCloud(ctx) // OLM gives the same rights in the namespace of the operators
		for _, operator := range operators {
			Expect(can(ctx, operator, "list", "rolebindings.rbac.authorization.k8s.io", cloudNamespace)).To(Equal("no"), operator)
		}
	})

	It("runs operators of a ControlPlane with an ACTIVE server", func(ctx SpecContext) { deployCloud(ctx, registry) })

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("upgrades operators through the catalog", func(ctx SpecContext) {
		By("releasing 0.2.0")
		second := makeRelease(ctx, registry, "0.2.0", &first)
		expectNoInterruption(ctx, func() {
			serveCatalog(ctx, second.catalog)
			Eventually(func() map[string]string { return phases(ctx) }).WithContext(ctx).Should(Equal(installed("0.2.0")), explain(ctx))
		})
	})

	It("removes operators", func(ctx SpecContext) {
		kubectl(ctx, "delete", "controlplane", "--all", "--namespace", cloudNamespace, "--timeout=5m")
		kubectl(ctx, "delete", "subscriptions", "--all", "--namespace", systemNamespace)
		kubectl(ctx, "delete", "clusterserviceversions", "--all", "--namespace", systemNamespace)
		Eventually(func() string {
			return kubectl(ctx, "get", "deployments,serviceaccounts,roles", "--namespace", systemNamespace, "--output=name")
		}).WithContext(ctx).ShouldNot(ContainSubstring("asterism-"))
	})
})
