package packages

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func withKubectl() {
	// manifest is the path of a file of a release.
	manifest := func(of release, name string) string { return filepath.Join(of.folder, "dist", name) }
	install := func(ctx context.Context, of release) {
		GinkgoHelper()
		kubectl(ctx, "apply", "--server-side", "-f", manifest(of, "install.yaml"))
		awaitRollout(ctx)
	}

	It("installs all operators by one file", func(ctx SpecContext) {
		measure("all operators available", func() { install(ctx, first) })
	})

	It("hands a namespace over by one file", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
		kubectl(ctx, "apply", "--namespace", cloudNamespace, "-f", manifest(first, "namespace.yaml"))
		expectRightsInCloud(ctx, systemNamespace)
	})

	It("runs operators of a ControlPlane with an ACTIVE server", func(ctx SpecContext) { deployCloud(ctx) })

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("runs no image that the list of the release lacks", func(ctx SpecContext) {
		expectListedImages(ctx, first, novaImage())
	})

	It("upgrades operators", func(ctx SpecContext) {
		before := operatorImages(ctx)
		expectNoInterruption(ctx, func() {
			install(ctx, second)
			Expect(operatorImages(ctx)).NotTo(Equal(before))
		})
	})

	It("removes operators and their kinds", func(ctx SpecContext) {
		deleteControlPlanes(ctx)
		kubectl(ctx, "delete", "--namespace", cloudNamespace, "-f", manifest(second, "namespace.yaml"), "--timeout=1m")
		kubectl(ctx, "delete", "--ignore-not-found", "-f", manifest(second, "install.yaml"), "--timeout=5m") // deletes the namespace first
		expectRemoved(ctx)
		Expect(kinds(ctx)).To(BeEmpty())
		deleteNamespaces(ctx, cloudNamespace)
	})
}

// measure reports the duration of a step.
func measure(step string, run func()) {
	GinkgoHelper()
	started := time.Now()
	run()
	AddReportEntry("time", step+" after "+time.Since(started).Round(time.Second).String())
}
