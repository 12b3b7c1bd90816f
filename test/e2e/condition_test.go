package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// condition is a condition of an object; only its kind is set if the object has none.
type condition struct{ kind, status, reason, message string }

func (c condition) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.kind, c.status, c.reason, c.message))
}

func conditions(o *unstructured.Unstructured) []condition {
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []condition
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		text := func(name string) string { value, _ := fields[name].(string); return value }
		all = append(all, condition{text("type"), text("status"), text("reason"), text("message")})
	}
	return all
}

func conditionOf(o *unstructured.Unstructured, kind string) condition {
	for _, c := range conditions(o) {
		if c.kind == kind {
			return c
		}
	}
	return condition{kind: kind}
}

// isReady reports whether an object is Ready for its current generation.
func isReady(o *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return conditionOf(o, "Ready").status == "True" && observed == o.GetGeneration()
}

// awaitReady waits until an object of one of Asterism's kinds is Ready.
func awaitReady(ctx context.Context, kind, namespace, name string) {
	GinkgoHelper()
	awaitWithin(ctx, patience, kind, namespace, name, func(g Gomega, o *unstructured.Unstructured) {
		g.Expect(isReady(o)).To(BeTrue(), "%s/%s: %s", kind, name, conditionOf(o, "Ready"))
	})
}

// awaitSettled waits until every object of Asterism's kinds in a namespace is Ready, parents
// first: a parent that is Ready for its generation has updated its children.
func awaitSettled(ctx context.Context, namespace string) {
	GinkgoHelper()
	for _, kind := range asterismKinds {
		objects, err := listOf(ctx, kind, namespace)
		Expect(err).NotTo(HaveOccurred())
		for i := range objects {
			awaitReady(ctx, kind, namespace, objects[i].GetName())
		}
	}
}

// awaitFalse waits until a condition is False for a reason ("" for any), with a
// message that contains every given text.
func awaitFalse(ctx context.Context, o *unstructured.Unstructured, kind, reason string, texts ...string) {
	GinkgoHelper()
	awaitWithin(ctx, patience, o.GetKind(), o.GetNamespace(), o.GetName(), func(g Gomega, o *unstructured.Unstructured) {
		found := conditionOf(o, kind)
		g.Expect(found.status).To(Equal("False"), "%s", found)
		if reason != "" {
			g.Expect(found.reason).To(Equal(reason), "%s", found)
		}
		for _, text := range texts {
			g.Expect(found.message).To(ContainSubstring(text))
		}
	})
}

// awaitWithin waits until a check of an object succeeds. A failure lists everything in the
// namespace that is not ready.
func awaitWithin(ctx context.Context, limit time.Duration, kind, namespace, name string, check func(Gomega, *unstructured.Unstructured)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		o := object(kind, namespace, name)
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		check(g, o)
	}).WithContext(ctx).WithTimeout(limit).WithPolling(250*time.Millisecond).Should(Succeed(), func() string { return explain(namespace) })
}

// awaitGone waits until an object of one of Asterism's kinds does not exist.
func awaitGone(ctx context.Context, kind, namespace, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		o := object(kind, namespace, name)
		err := k8s.Get(ctx, client.ObjectKeyFromObject(o), o)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred(), "%s/%s: %s", kind, name, conditionOf(o, "Ready"))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), func() string { return explain(namespace) })
}

// explain lists what is not ready in a namespace: objects of Asterism's kinds with their
// conditions, and pods with the last lines of their logs.
func explain(namespace string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	lines := []string{"Objects that are not ready in namespace " + namespace + ":"}
	for _, kind := range asterismKinds {
		objects, err := listOf(ctx, kind, namespace)
		if err != nil {
			lines = append(lines, err.Error())
		}
		for i := range objects {
			lines = append(lines, stuck(&objects[i])...)
		}
	}
	var pods corev1.PodList
	if err := k8s.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		lines = append(lines, stuckPod(ctx, &pods.Items[i])...)
	}
	return strings.Join(lines, "\n")
}

func stuck(o *unstructured.Unstructured) []string {
	if isReady(o) {
		return nil
	}
	lines := []string{fmt.Sprintf("%s/%s", o.GetKind(), o.GetName())}
	if at := o.GetDeletionTimestamp(); at != nil {
		lines[0] += fmt.Sprintf(" is being deleted and has finalizers %v", o.GetFinalizers())
	}
	for _, c := range conditions(o) {
		if c.status != "True" && c.reason != "NotReached" {
			lines = append(lines, "  "+c.String())
		}
	}
	return lines
}

func stuckPod(ctx context.Context, pod *corev1.Pod) []string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	var lines []string
	for _, status := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		ended := status.State.Terminated
		if status.Ready || (ended != nil && ended.ExitCode == 0) {
			continue
		}
		previous := status.State.Waiting != nil && status.LastTerminationState.Terminated != nil
		lines = append(lines, fmt.Sprintf("Pod/%s container %s: %s", pod.Name, status.Name, containerState(status)), lastLines(ctx, pod, status.Name, previous))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			lines = append(lines, fmt.Sprintf("Pod/%s: %s", pod.Name, c.Message))
		}
	}
	return lines
}

func containerState(status corev1.ContainerStatus) string {
	switch {
	case status.State.Waiting != nil:
		return fmt.Sprintf("waiting: %s %s (%d restarts)", status.State.Waiting.Reason, status.State.Waiting.Message, status.RestartCount)
	case status.State.Terminated != nil:
		return fmt.Sprintf("ended with %d: %s", status.State.Terminated.ExitCode, status.State.Terminated.Message)
	default:
		return fmt.Sprintf("running, not ready (%d restarts)", status.RestartCount)
	}
}

func lastLines(ctx context.Context, pod *corev1.Pod, container string, previous bool) string {
	count := int64(15)
	out, err := typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &count}).DoRaw(ctx)
	if err != nil {
		return "  no log: " + err.Error()
	}
	return "  " + strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n  ")
}

// events returns the notes of the events about an object.
func events(ctx context.Context, namespace, kind, name string) []string {
	GinkgoHelper()
	found, err := typed.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var notes []string
	for _, event := range found.Items {
		if event.Regarding.Kind == kind && event.Regarding.Name == name {
			notes = append(notes, event.Reason+": "+event.Note)
		}
	}
	return notes
}
