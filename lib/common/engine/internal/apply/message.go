package apply

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
