package apply

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podSelector returns the selector of the pods of a workload or Job, nil for other objects.
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

// pods lists the pods of a workload or Job, without a watch.
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

// podProblem describes the first pod that cannot start, with the text of "kubectl describe
// pod", or else the first pod that is not ready, or the lack of pods.
func (c *Children) podProblem(ctx context.Context, _ client.Reader, obj client.Object) (string, error) {
	if podSelector(obj) == nil {
		return "", nil
	}
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
	if len(pods) == 0 {
		return noPods(obj), nil
	}
	cannotStart := func(pod *corev1.Pod) string { return problemOf(pod, c.Mask) }
	for _, problem := range []func(*corev1.Pod) string{cannotStart, unready} {
		for i := range pods {
			if text := problem(&pods[i]); text != "" && pods[i].DeletionTimestamp == nil {
				return "pod " + pods[i].Name + ": " + text, nil
			}
		}
	}
	return "", nil
}

// noPods describes a workload without pods, some seconds after it should have some. The
// cause, for example a refusal of Pod Security or of a quota, is in events of the workload,
// which no operator may read.
func noPods(obj client.Object) string {
	if wantedPods(obj) == 0 || obj.GetDeletionTimestamp() != nil {
		return ""
	}
	kind := strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind)
	return fmt.Sprintf("no pod exists: see kubectl describe %s %s", kind, obj.GetName())
}

func wantedPods(obj client.Object) int32 {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return replicas(obj.Spec.Replicas)
	case *appsv1.Deployment:
		return replicas(obj.Spec.Replicas)
	case *appsv1.DaemonSet:
		return obj.Status.DesiredNumberScheduled
	}
	return 0
}

func problemOf(pod *corev1.Pod, mask func(string) string) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range statuses {
			if problem := containerProblem(container, mask); problem != "" {
				return problem
			}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
	}
	return ""
}

// containerProblem describes why a container waits, or how it ended last.
func containerProblem(container corev1.ContainerStatus, mask func(string) string) string {
	ended := container.LastTerminationState.Terminated
	if container.State.Terminated != nil {
		ended = container.State.Terminated
	}
	var parts []string
	if waiting := container.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
		parts = append(parts, waiting.Reason)
		if ended == nil && waiting.Message != "" {
			parts = append(parts, ": "+firstLine(mask(waiting.Message)))
		}
	}
	if ended != nil && ended.ExitCode != 0 && !container.Ready {
		if ended.Reason != "" && ended.Reason != "Error" {
			parts = append(parts, ", "+ended.Reason)
		}
		parts = append(parts, fmt.Sprintf(", ended with %d", ended.ExitCode))
		// The last lines of a program that was killed have no cause, and may be text of its users.
		if lines := lastLines(shorten(mask(withoutCut(ended.Message)))); lines != "" && ended.ExitCode <= killed {
			parts = append(parts, ": "+lines)
		}
	}
	return strings.TrimPrefix(strings.Join(parts, ""), ", ")
}

// unreadyAfter is the time after which a running container without an accepted probe is
// a problem.
const unreadyAfter = time.Minute

// unready names the probe that a running container of a pod fails. The cause is in events
// of the pod, which no operator may read.
func unready(pod *corev1.Pod) string {
	for _, container := range pod.Status.ContainerStatuses {
		running := container.State.Running
		if running == nil || container.Ready || time.Since(running.StartedAt.Time) < unreadyAfter {
			continue
		}
		probe := "readiness"
		if container.Started != nil && !*container.Started {
			probe = "startup"
		}
		return fmt.Sprintf("the %s probe of container %s fails: see kubectl describe pod", probe, container.Name)
	}
	return ""
}

const (
	// maxMessage bounds the stored part of a termination message, in bytes.
	maxMessage = 2048
	// kubeletMaxOutput bounds the part of a container's output that the kubelet uses as
	// the termination message, in bytes. A message from a file can be longer.
	kubeletMaxOutput = 2048
)

// terminationMessage returns the message of the first container that failed, or otherwise the
// whole result of the last container. The message of a failure is masked before it is
// shortened, because a mask does not match half a secret.
func terminationMessage(pods []corev1.Pod, mask func(string) string) (message string, known bool) {
	for _, pod := range pods {
		statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
		for _, status := range statuses {
			ended := status.State.Terminated
			if ended == nil {
				continue
			}
			if ended.ExitCode != 0 {
				return fmt.Sprintf("%s ended with %d: %s", status.Name, ended.ExitCode, lastLines(shorten(mask(withoutCut(ended.Message))))), true
			}
			message, known = strings.TrimSpace(ended.Message), true
		}
	}
	return message, known
}

// killed is the exit code above which a signal ended the program.
const killed = 128

// escapes are the colors of a terminal, and logPrefix is what oslo.log and other logs write
// before the text of a line: date and time, process, level and logger, and the request.
var (
	escapes   = regexp.MustCompile("[\x1b ]\\[[0-9;]*m") // masks write a space for a control character
	logPrefix = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*(?: \d+)?(?: [A-Z]+ [\w.]+)? (?:\[[^\]]*\] )?`)
)

// lastLines returns the text of the last three lines of a program's output, or of three lines
// from the error of the last stack trace on, after which a server may still say how it ends.
// Lines that are indented or underlined belong to a stack trace, and lines in parentheses are
// remarks: both are left out.
func lastLines(message string) string {
	var lines []string
	cause, inTrace := -1, false // the index of the error, which is the next line after a stack trace
	for line := range strings.Lines(message) {
		line = strings.TrimRight(escapes.ReplaceAllString(line, ""), "\n\r ")
		line = logPrefix.ReplaceAllString(line+" ", "")
		switch {
		case strings.TrimSpace(line) == "" || strings.ContainsAny(line[:1], "(^"):
		case line[0] == ' ' || strings.HasPrefix(line, "Traceback "):
			inTrace = true
		default:
			if inTrace {
				cause, inTrace = len(lines), false
			}
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	if len(lines) == 0 {
		return message
	}
	from := max(0, len(lines)-3)
	if cause >= 0 {
		from = min(from, cause)
	}
	return strings.Join(lines[from:min(from+3, len(lines))], " / ")
}

// withoutCut removes the first line, or the first word of a single line, if the kubelet may
// have cut it: of a long output, the kubelet keeps only the end.
func withoutCut(message string) string {
	if len(message) < kubeletMaxOutput {
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
