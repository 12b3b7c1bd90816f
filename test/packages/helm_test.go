package packages

import (
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Helm", Label("helm"), Ordered, func() {
	var registry string
	var first release

	// helm runs the command on the release asterism with a chart of the operators.
	helm := func(ctx SpecContext, command string, from release, options ...string) {
		GinkgoHelper()
		chart := filepath.Join(from.folder, "charts", "asterism")
		_, err := run(ctx, "", program("helm"), "dependency", "build", chart)
		Expect(err).NotTo(HaveOccurred())
		_, err = run(ctx, "", program("helm"), append([]string{command, "asterism", chart, "--namespace", systemNamespace, "--wait", "--timeout", "5m"}, options...)...)
		Expect(err).NotTo(HaveOccurred())
	}
	images := func(ctx SpecContext) string {
		GinkgoHelper()
		return kubectl(ctx, "get", "deployments", "--namespace", systemNamespace, `--output=jsonpath={range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}`)
	}

	BeforeAll(func(ctx SpecContext) {
		registry = serveRegistry()
		pushOperands(registry)
		By("releasing 0.1.0")
		first = makeRelease(ctx, registry, "0.1.0", nil)
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
	})

	It("installs all operators by one chart", func(ctx SpecContext) {
		started := time.Now()
		helm(ctx, "install", first, "--create-namespace", "--set", "global.asterism.watchNamespaces={"+cloudNamespace+"}")
		AddReportEntry("time", fmt.Sprintf("all operators available after %s", time.Since(started).Round(time.Second)))
	})

	It("gives operators rights in the listed namespaces alone", func(ctx SpecContext) { expectRightsInCloud(ctx, systemNamespace) })

	It("runs operators of a ControlPlane with an ACTIVE server", func(ctx SpecContext) { deployCloud(ctx, registry) })

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("upgrades operators, and rolls the upgrade back", func(ctx SpecContext) {
		By("releasing 0.2.0")
		second, before := makeRelease(ctx, registry, "0.2.0", &first), images(ctx)
		expectNoInterruption(ctx, func() {
			helm(ctx, "upgrade", second, "--reset-then-reuse-values")
			Expect(images(ctx)).NotTo(Equal(before))
		})
		expectNoInterruption(ctx, func() {
			_, err := run(ctx, "", program("helm"), "rollback", "asterism", "1", "--namespace", systemNamespace, "--wait", "--timeout", "5m")
			Expect(err).NotTo(HaveOccurred())
			Expect(images(ctx)).To(Equal(before))
		})
	})

	It("refuses to remove operators while resources exist", func(ctx SpecContext) {
		_, err := run(ctx, "", program("helm"), "uninstall", "asterism", "--namespace", systemNamespace, "--wait") // prints the Job's log to stderr
		Expect(err).To(MatchError(ContainSubstring("kubectl delete controlplane demo --namespace " + cloudNamespace)))
		Expect(kubectl(ctx, "get", "deployments", "--namespace", systemNamespace, "--output=name")).To(ContainSubstring("asterism-meta-operator"))
	})

	It("removes operators, and keeps the kinds", func(ctx SpecContext) {
		kubectl(ctx, "delete", "controlplane", "--all", "--namespace", cloudNamespace, "--timeout=5m")
		_, err := run(ctx, "", program("helm"), "uninstall", "asterism", "--namespace", systemNamespace, "--wait")
		Expect(err).NotTo(HaveOccurred())
		const ofAsterism = "--selector=app.kubernetes.io/part-of=asterism"
		Eventually(func() string {
			return kubectl(ctx, "get", "deployments,serviceaccounts,roles,rolebindings,networkpolicies", "--all-namespaces", ofAsterism, "--output=name") +
				kubectl(ctx, "get", "clusterroles,clusterrolebindings,validatingadmissionpolicies", ofAsterism, "--output=name")
		}).WithContext(ctx).Should(BeEmpty())
		Expect(kubectl(ctx, "get", "customresourcedefinitions", ofAsterism, "--output=name")).NotTo(BeEmpty())
	})
})
