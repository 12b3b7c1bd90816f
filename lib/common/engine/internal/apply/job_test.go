package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMessagesAreMaskedBeforeTheyAreCut: a mask does not match half a password.
func TestMessagesAreMaskedBeforeTheyAreCut(t *testing.T) {
	const password = "c4n4ry-that-is-cut"
	mask := func(text string) string { return strings.ReplaceAll(text, password, "***") }
	line := strings.Repeat("x", 100) + "\n"
	for name, message := range map[string]string{
		"by the operator":             strings.Repeat(line, 10) + "as " + password + " " + strings.Repeat("y", maxMessage-10),
		"by the kubelet":              password[6:] + " " + strings.Repeat(line, 30)[:kubeletMaxOutput],
		"by the kubelet, in one line": password[6:] + " " + strings.Repeat("x", kubeletMaxOutput) + "\n",
	} {
		pods := []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}},
		}}}}}
		got, known := terminationMessage(pods, mask)
		if !known || got == "" || strings.Contains(got, password[len(password)-6:]) {
			t.Errorf("cut %s: %q, %t", name, got, known)
		}
	}
}
