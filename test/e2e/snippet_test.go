package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snippetSpecs change the configuration snippet of the demo's scheduler.
func snippetSpecs() {
	const pod = "Pod/demo-scheduler-0"

	It("restarts only the scheduler for the scheduler's snippet", func(ctx SpecContext) {
		before := uidsOf(ctx, demoNamespace)
		setSnippet(ctx, "[filter_scheduler]\nhost_subset_size = 2\n")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")

		after := uidsOf(ctx, demoNamespace)
		Expect(after[pod]).NotTo(Equal(before[pod]), "the scheduler's pod was not restarted")
		isOfRevision := func(name, _ string) bool {
			return name == pod || strings.HasPrefix(name, "ConfigMap/demo-scheduler-config-data-")
		}
		maps.DeleteFunc(before, isOfRevision)
		maps.DeleteFunc(after, isOfRevision)
		Expect(after).To(Equal(before), "another object was created, recreated or deleted")
		effective, err := execIn(ctx, demoNamespace, "demo-scheduler-0", "cat", "/etc/nova/nova.conf.effective")
		Expect(err).NotTo(HaveOccurred())
		Expect(effective).To(MatchRegexp(`(?m)^host_subset_size = 2  # 90-custom\.conf`))
	})

	It("names the value with which a revision crashes, and recovers", func(ctx SpecContext) {
		setSnippet(ctx, "[DEFAULT]\nservice_down_time = soon\n")
		awaitWithin(ctx, patience, "ControlPlane", demoNamespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Ready").message).To(And(ContainSubstring("service_down_time"), ContainSubstring("'soon'")))
		})
		setSnippet(ctx, "")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	})
}

// setSnippet changes the scheduler's snippet of the demo's ControlPlane, and waits until
// the scheduler's operator has observed it.
func setSnippet(ctx context.Context, snippet string) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"nova": map[string]any{"scheduler": map[string]any{"customServiceConfig": snippet}}}})
	Expect(err).NotTo(HaveOccurred())
	o := object("ControlPlane", demoNamespace, "demo")
	Expect(k8s.Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner(tester))).To(Succeed())
	awaitWithin(ctx, patience, "NovaScheduler", demoNamespace, "demo-scheduler", func(g Gomega, o *unstructured.Unstructured) {
		seen, _, _ := unstructured.NestedString(o.Object, "spec", "customServiceConfig")
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		g.Expect(seen).To(Equal(snippet))
		g.Expect(observed).To(Equal(o.GetGeneration()))
	})
}
