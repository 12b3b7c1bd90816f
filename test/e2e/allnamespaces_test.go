package e2e

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// config/all-namespaces in place of the installation of the demo, and back.
var _ = Describe("Operators for all namespaces", Serial, Ordered, func() {
	const namespace = "e2e-anywhere" // no RoleBinding hands this namespace over

	scheduler := object("NovaScheduler", namespace, "scheduler")

	BeforeAll(func(ctx SpecContext) {
		makeNamespace(ctx, namespace)
		scaleAll(ctx, sharedOperators, 0) // one operator for each object
		DeferCleanup(scaleAll, sharedOperators, 1)
		DeferCleanup(func(ctx SpecContext) {
			installed(ctx, repository(".demo", "operators"))
			deleteAllNamespacesBindings(ctx)
		})
	})

	It("reconcile an object in a namespace without RoleBindings", func(ctx SpecContext) {
		apply(ctx, namespace, lonelyScheduler)
		Consistently(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(scheduler), scheduler)).To(Succeed())
			g.Expect(scheduler.Object).NotTo(HaveKey("status"))
		}).WithContext(ctx).Should(Succeed(), "no operator watches namespace %s", namespace)

		installed(ctx, allNamespaces())
		awaitFalse(ctx, scheduler, "InputsReady", "Waiting", "Secret cell0-database")
		kubectl(ctx, "delete", "novascheduler", "scheduler", "--namespace="+namespace, "--timeout=30s")
	})

	It("keep the control plane of the demo Ready", func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	})

	It("return to the namespaces that are handed over", func(ctx SpecContext) {
		installed(ctx, repository(".demo", "operators"))
		deleteAllNamespacesBindings(ctx)
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		apply(ctx, namespace, lonelyScheduler)
		Consistently(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(scheduler), scheduler)).To(Succeed())
			g.Expect(scheduler.Object).NotTo(HaveKey("status"))
		}).WithContext(ctx).Should(Succeed())
	})
})

// allNamespaces is a folder with config/all-namespaces and the images of the demo.
func allNamespaces() string {
	GinkgoHelper()
	content, err := os.ReadFile(repository(".demo", "operators", "kustomization.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var demo struct {
		Images []map[string]string `json:"images"`
	}
	Expect(yaml.Unmarshal(content, &demo)).To(Succeed())
	images, err := yaml.Marshal(demo)
	Expect(err).NotTo(HaveOccurred())
	return kustomization(string(images) + "resources: [" + repository("config", "all-namespaces") + "]\n")
}

// installed applies an installation as `make demo` does, and waits for its operators.
func installed(ctx context.Context, folder string) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=asterism-demo", "-k", folder)
	awaitOperators(ctx, demoOperators...)
}

// deleteAllNamespacesBindings deletes the ClusterRoleBindings that config/all-namespaces adds.
func deleteAllNamespacesBindings(ctx context.Context) {
	GinkgoHelper()
	for _, operator := range operators(ctx, systemNamespace) {
		kubectl(ctx, "delete", "clusterrolebinding", operator.Spec.Template.Spec.ServiceAccountName, "--ignore-not-found")
	}
}

// scaleAll starts or stops every operator of a namespace, and waits.
func scaleAll(ctx context.Context, namespace string, replicas int) {
	GinkgoHelper()
	kubectl(ctx, "scale", "deployment", "--all", "--namespace="+namespace, fmt.Sprintf("--replicas=%d", replicas))
	awaitOperators(ctx, namespace)
}
