package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podSelector of a workload or Job, nil for another object.
func podSelector(obj client.Object) *metav1.LabelSelector {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return obj.Spec.Selector
	case *appsv1.Deployment:
		return obj.Spec.Selector
	case *appsv1.DaemonSet:
		return obj.Spec.Selector
	case *batchv1.Job:
		return &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.JobNameLabel: obj.Name}}
	}
	return nil
}

// pods of a workload or Job. They are never watched.
func (c *Children) pods(ctx context.Context, obj client.Object) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(podSelector(obj))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.View.ReadTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := c.View.API.List(ctx, &pods, client.InNamespace(obj.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", obj.GetName(), err)
	}
	return pods.Items, nil
}

// podTrouble says of the first pod that cannot start what "kubectl describe pod"
// would say.
func (c *Children) podTrouble(ctx context.Context, _ client.Reader, obj client.Object) (string, error) {
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		for _, condition := range deployment.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return condition.Reason + ": " + condition.Message, nil
			}
		}
	}
	pods, err := c.pods(ctx, obj)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if trouble := troubleOf(&pods[i], c.Mask); trouble != "" && pods[i].DeletionTimestamp == nil {
			return "pod " + pods[i].Name + ": " + trouble, nil
		}
	}
	return "", nil
}

func troubleOf(pod *corev1.Pod, mask func(string) string) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range statuses {
			if trouble := containerTrouble(container, mask); trouble != "" {
				return trouble
			}
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if trouble := unready(container); trouble != "" {
			return trouble
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
	}
	return ""
}

// containerTrouble is why a container waits, or how it ended last.
func containerTrouble(container corev1.ContainerStatus, mask func(string) string) string {
	ended := container.LastTerminationState.Terminated
	if container.State.Terminated != nil {
		ended = container.State.Terminated
	}
	var said []string
	if waits := container.State.Waiting; waits != nil && waits.Reason != "PodInitializing" && waits.Reason != "ContainerCreating" {
		said = append(said, waits.Reason)
		if ended == nil && waits.Message != "" {
			said = append(said, ": "+firstLine(mask(waits.Message)))
		}
	}
	if ended != nil && ended.ExitCode != 0 && !container.Ready {
		if ended.Reason != "" && ended.Reason != "Error" {
			said = append(said, ", "+ended.Reason)
		}
		said = append(said, fmt.Sprintf(", ended with %d", ended.ExitCode))
		if words := lastWords(shorten(mask(uncut(ended.Message)))); words != "" {
			said = append(said, ": "+words)
		}
	}
	return strings.TrimPrefix(strings.Join(said, ""), ", ")
}

// unreadyAfter is how long a container may run before its probes are the trouble.
const unreadyAfter = time.Minute

// unready names the probe that a running container fails. The status has no more of it;
// the answers to the probe are in events of the pod, which no operator may read.
func unready(container corev1.ContainerStatus) string {
	running := container.State.Running
	if running == nil || container.Ready || time.Since(running.StartedAt.Time) < unreadyAfter {
		return ""
	}
	probe := "readiness"
	if container.Started != nil && !*container.Started {
		probe = "startup"
	}
	return fmt.Sprintf("the %s probe of container %s fails: see kubectl describe pod", probe, container.Name)
}

const (
	// maxMessage bounds what of a termination message is stored, in bytes.
	maxMessage = 2048
	// kubeletKeeps is how much of a container's output becomes its message; of a
	// file it is more.
	kubeletKeeps = 2048
)

// terminationMessage returns the message of the container that decided how the
// Job ended: the first that failed, or else the last one. It is masked before it
// is cut anywhere: half a secret would not be known.
func terminationMessage(pods []corev1.Pod, mask func(string) string) (message string, known bool) {
	for _, pod := range pods {
		statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
		for _, status := range statuses {
			ended := status.State.Terminated
			if ended == nil {
				continue
			}
			message, known = shorten(mask(uncut(ended.Message))), true
			if ended.ExitCode != 0 {
				return fmt.Sprintf("%s ended with %d: %s", status.Name, ended.ExitCode, lastWords(message)), true
			}
		}
	}
	return message, known
}

// lastWords are the end of what a failed program said. Lines that are indented
// are the stack above it, and those in parentheses are remarks on it.
func lastWords(message string) string {
	var words []string
	for line := range strings.Lines(message) {
		line = strings.TrimRight(line, "\n\r ")
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "(") && !strings.HasPrefix(line, "^") {
			words = append(words, line)
		}
	}
	if len(words) == 0 {
		return message
	}
	return strings.Join(words[max(0, len(words)-3):], " / ")
}

// uncut leaves out the line, or the word, that the kubelet may have cut: of a
// long output it keeps the end, which begins anywhere.
func uncut(message string) string {
	if len(message) < kubeletKeeps {
		return message
	}
	line, rest, _ := strings.Cut(message, "\n")
	if strings.TrimSpace(rest) == "" {
		_, rest, _ = strings.Cut(line, " ")
	}
	return rest
}

func shorten(message string) string {
	message = strings.TrimSpace(message)
	if len(message) > maxMessage {
		return "…" + strings.ToValidUTF8(message[len(message)-maxMessage:], "")
	}
	return message
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
