package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snippetSpecs change the configuration snippets of the demo's scheduler and API.
func snippetSpecs() {
	const pod = "Pod/demo-scheduler-0"

	It("restarts only the scheduler for the scheduler's snippet", func(ctx SpecContext) {
		before := uidsOf(ctx, demoNamespace)
		setSnippet(ctx, "scheduler", "[filter_scheduler]\nhost_subset_size = 2\n")
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
		setSnippet(ctx, "scheduler", crashing)
		awaitCrash(ctx)
		setSnippet(ctx, "scheduler", "")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	})

	It("starts an evicted pod with the configuration of its revision while the next revision crashes", func(ctx SpecContext) {
		before := podsOf(ctx, demoNamespace, apiPods)
		Expect(before).To(HaveLen(1))
		setSnippet(ctx, "api", crashing)
		awaitCrash(ctx)
		Expect(k8s.Delete(ctx, &before[0])).To(Succeed())
		const revision = "asterism.dev/config-hash"
		Eventually(func(g Gomega) {
			var answering []string
			for _, pod := range podsOf(ctx, demoNamespace, apiPods) {
				if pod.UID != before[0].UID && podIsReady(pod) {
					answering = append(answering, pod.Annotations[revision])
				}
			}
			g.Expect(answering).To(ConsistOf(before[0].Annotations[revision]))
		}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
		awaitAnswer(ctx, serviceURL(demoNamespace, "demo-api", 8774)) // the node learns of the pod's address later
		Expect(signIn(ctx, demoNamespace).services(ctx)).NotTo(BeEmpty())
		setSnippet(ctx, "api", "")
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
	})
}

// apiPods are the labels of the pods of the demo's API.
var apiPods = map[string]string{"app.kubernetes.io/instance": "demo-api"}

// podIsReady tells whether the kubelet reports a pod as ready.
func podIsReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// crashing is the snippet of a service that cannot start.
const crashing = "[DEFAULT]\nservice_down_time = soon\n"

// awaitCrash waits until the ControlPlane names the value of crashing.
func awaitCrash(ctx context.Context) {
	GinkgoHelper()
	awaitWithin(ctx, patience, "ControlPlane", demoNamespace, "demo", func(g Gomega, o *unstructured.Unstructured) {
		g.Expect(conditionOf(o, "Ready").message).To(And(ContainSubstring("service_down_time"), ContainSubstring("'soon'")))
	})
}

// setSnippet changes the snippet of a service of the demo's ControlPlane, scheduler or api, and waits
// until the operator of this service has observed it.
func setSnippet(ctx context.Context, service, snippet string) {
	GinkgoHelper()
	kind := map[string]string{"scheduler": "NovaScheduler", "api": "NovaAPI"}[service]
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"nova": map[string]any{service: map[string]any{"customServiceConfig": snippet}}}})
	Expect(err).NotTo(HaveOccurred())
	o := object("ControlPlane", demoNamespace, "demo")
	Expect(k8s.Patch(ctx, o, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner(tester))).To(Succeed())
	awaitWithin(ctx, patience, kind, demoNamespace, "demo-"+service, func(g Gomega, o *unstructured.Unstructured) {
		seen, _, _ := unstructured.NestedString(o.Object, "spec", "customServiceConfig")
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		g.Expect(seen).To(Equal(snippet))
		g.Expect(observed).To(Equal(o.GetGeneration()))
	})
}
