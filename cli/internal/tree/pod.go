package tree

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// podTrouble returns why a pod is not ready: it has no node, or its first init container that
// is not done, or else its first container that is not ready. It returns "" for another
// cause.
func podTrouble(o *unstructured.Unstructured) string {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		return err.Error()
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "no node: " + c.Message
		}
	}
	for _, container := range pod.Status.InitContainerStatuses {
		if ended := container.State.Terminated; !container.Ready && (ended == nil || ended.ExitCode != 0) {
			return containerTrouble(container)
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if !container.Ready {
			return containerTrouble(container)
		}
	}
	return ""
}

func containerTrouble(container corev1.ContainerStatus) string {
	state, last := "running, not ready", container.LastTerminationState.Terminated
	switch now := container.State; {
	case now.Terminated != nil:
		state = ended(now.Terminated)
	case now.Waiting != nil && last != nil:
		state = now.Waiting.Reason
	case now.Waiting != nil:
		state = strings.TrimSuffix(now.Waiting.Reason+": "+now.Waiting.Message, ": ")
	}
	if container.RestartCount > 0 && last != nil {
		state += fmt.Sprintf(", restarts: %d, the last run %s", container.RestartCount, ended(last))
	}
	return fmt.Sprintf("container %s: %s", container.Name, state)
}

func ended(run *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", run.ExitCode)
	if detail := cmp.Or(strings.TrimSpace(run.Message), strings.TrimPrefix(run.Reason, "Error")); detail != "" {
		text += ": " + detail
	}
	return text
}
