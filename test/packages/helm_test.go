package packages

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func withHelm() {
	// helm runs the command on the release asterism with a chart of the operators.
	helm := func(ctx SpecContext, command string, from release, options ...string) {
		GinkgoHelper()
		chart := filepath.Join(from.folder, "charts", "asterism")
		_, err := run(ctx, "", program("helm"), "dependency", "build", chart)
		Expect(err).NotTo(HaveOccurred())
		_, err = run(ctx, "", program("helm"), append([]string{command, "asterism", chart, "--namespace", systemNamespace, "--wait", "--timeout", "5m"}, options...)...)
		Expect(err).NotTo(HaveOccurred())
	}

	It("installs all operators by one chart", func(ctx SpecContext) {
		kubectl(ctx, "apply", "-f", repository("config", "operator-namespaces.yaml"))
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
		measure("all operators available", func() {
			helm(ctx, "install", first, "--set", "global.asterism.watchNamespaces={"+cloudNamespace+"}")
		})
	})

	It("gives operators rights in the listed namespaces alone", func(ctx SpecContext) { expectRightsInCloud(ctx, systemNamespace) })

	It("runs operators of a ControlPlane with an ACTIVE server", func(ctx SpecContext) { deployCloud(ctx, "with-helm") })

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("runs no image that the list of the release lacks", func(ctx SpecContext) {
		expectListedImages(ctx, first, novaImage())
	})

	It("upgrades operators, and rolls the upgrade back", func(ctx SpecContext) {
		before := operatorImages(ctx)
		expectNoInterruption(ctx, func() {
			helm(ctx, "upgrade", second, "--reset-then-reuse-values")
			Expect(operatorImages(ctx)).NotTo(Equal(before))
		})
		expectNoInterruption(ctx, func() {
			_, err := run(ctx, "", program("helm"), "rollback", "asterism", "1", "--namespace", systemNamespace, "--wait", "--timeout", "5m")
			Expect(err).NotTo(HaveOccurred())
			Expect(operatorImages(ctx)).To(Equal(before))
		})
	})

	It("refuses to remove operators while resources exist", func(ctx SpecContext) {
		_, err := run(ctx, "", program("helm"), "uninstall", "asterism", "--namespace", systemNamespace, "--wait") // prints the Job's log to stderr
		Expect(err).To(MatchError(ContainSubstring("kubectl delete controlplane demo --namespace " + cloudNamespace)))
		Expect(kubectl(ctx, "get", "deployments", "--namespace", systemNamespace, "--output=name")).To(ContainSubstring("asterism-meta-operator"))
	})

	It("removes operators, and keeps the kinds", func(ctx SpecContext) {
		deleteControlPlanes(ctx)
		_, err := run(ctx, "", program("helm"), "uninstall", "asterism", "--namespace", systemNamespace, "--wait")
		Expect(err).NotTo(HaveOccurred())
		expectRemoved(ctx)
		Expect(kinds(ctx)).NotTo(BeEmpty())
		deleteKinds(ctx)
		deleteNamespaces(ctx, systemNamespace, storageNamespace)
	})
}
