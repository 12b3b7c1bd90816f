package tree

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trouble is why a pod is not ready: it has no node, or a container is not ready.
type Trouble struct {
	Container string // empty if the pod has no node
	Text      string
	Previous  bool // the run of the container before the present one has the cause
	Logged    bool // the run with the cause has a log
}

// String returns one line, "" for a ready pod.
func (t Trouble) String() string {
	if t.Container == "" {
		return t.Text
	}
	return fmt.Sprintf("container %s: %s", t.Container, t.Text)
}

// TroubleOf returns why a pod is not ready: it has no node, or its first init container that
// is not done, or else its first container that is not ready. The trouble is empty for
// another cause.
func TroubleOf(o *unstructured.Unstructured) Trouble {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		return Trouble{Text: err.Error()}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Trouble{Text: "no node: " + c.Message}
		}
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if ended := container.State.Terminated; !container.Ready && (ended == nil || ended.ExitCode != 0) {
			return containerTrouble(container)
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		switch ended := container.State.Terminated; {
		case container.Ready:
		case ended == nil || ended.ExitCode != 0:
			return containerTrouble(container)
		case pod.DeletionTimestamp != nil:
			return Trouble{Text: "is being deleted"}
		case !runsJob(pod):
			return containerTrouble(container) // a service does not end
		}
	}
	return Trouble{}
}

// runsJob tells whether the containers of a pod may end: a Job allows no other policies.
func runsJob(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

func containerTrouble(container corev1.ContainerStatus) Trouble {
	last := container.LastTerminationState.Terminated
	t := Trouble{Container: container.Name, Text: "running, not ready", Logged: true}
	switch now := container.State; {
	case now.Terminated != nil:
		t.Text = ended(now.Terminated)
	case now.Waiting != nil && last != nil:
		t.Text, t.Previous = now.Waiting.Reason, true
	case now.Waiting != nil:
		t.Text, t.Logged = strings.TrimSuffix(now.Waiting.Reason+": "+now.Waiting.Message, ": "), false
	}
	if container.RestartCount > 0 && last != nil {
		t.Text += fmt.Sprintf(", restarts: %d, the last run %s", container.RestartCount, ended(last))
	}
	return t
}

func ended(run *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", run.ExitCode)
	if detail := cmp.Or(strings.TrimSpace(run.Message), strings.TrimPrefix(run.Reason, "Error")); detail != "" {
		text += ": " + detail
	}
	return text
}
