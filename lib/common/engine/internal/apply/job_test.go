package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"asterism.dev/lib/common/engine/internal/observe"
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
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}},
		}}}}}
		got, known := terminationMessage(pods, mask)
		if !known || got == "" || strings.Contains(got, password[len(password)-6:]) {
			t.Errorf("cut %s: %q, %t", name, got, known)
		}
	}
}

// TestTheEndOfALogIsItsCause: of a log with a stack trace, as oslo.log writes it, and of
// output without one.
func TestTheEndOfALogIsItsCause(t *testing.T) {
	const prefix = "2026-01-02 03:04:05.678 3 ERROR library "
	for message, want := range map[string]string{
		"2026-01-02 03:04:05.678 3 CRITICAL library [None req-1 - -] Unhandled error: no\n" +
			prefix + "Traceback (most recent call last):\n" +
			prefix + "  File \"cfg.py\", line 1, in _get\n" +
			prefix + "    raise ValueError(message)\n" +
			prefix + "           ^^^^^^^^^^\n" +
			prefix + "ValueError: 'two' is not a number\n" +
			prefix + "\x1b[00m\n": "Unhandled error: no / ValueError: 'two' is not a number",
		"Traceback (most recent call last):\n  File \"app\", line 1\nValueError: 'two' is not a number\nunable to load app 0\n*** no app loaded\nOOPS !\ngoodbye\n": "ValueError: 'two' is not a number / unable to load app 0 / *** no app loaded",
		"Traceback (most recent call last):\n  File \"app\", line 1\n": "Traceback (most recent call last):\n  File \"app\", line 1\n",
		prefix + "    value = get()\n" + prefix + "            ^^^^^\n" + prefix + "ValueError: 'two' is not a number\n" + prefix + " [00m\nunable to load app 0\nGAME OVER\nOOPS !\ngoodbye\n": "ValueError: 'two' is not a number / unable to load app 0 / GAME OVER", // the begin is cut
		"one\ntwo\n\nthree\n(a remark)\nfour\n": "two / three / four",
		"  indented alone\n":                    "  indented alone\n",
	} {
		if got := lastLines(message); got != want {
			t.Errorf("of %q: %q, want %q", message, got, want)
		}
	}
}

// TestResultsAreStoredAsTheyAre: a result may have the text of a short password by chance.
func TestResultsAreStoredAsTheyAre(t *testing.T) {
	result := "uuid=abc-123\n" + strings.Repeat("host\n", 800) + "end"
	pods := []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: result + "\n"}},
	}}}}}
	got, known := terminationMessage(pods, func(text string) string { return strings.ReplaceAll(text, "abc", "***") })
	if !known || got != result {
		t.Errorf("%d bytes of %d, %t: %q", len(got), len(result), known, got[:20])
	}
}

// TestARefusalIsTriedAgain: the API server also refuses an object because of another object.
func TestARefusalIsTriedAgain(t *testing.T) {
	refused := OutcomeOf(OutcomeOfWrite(observe.Key{}, errors.NewInvalid(schema.GroupKind{}, "x", nil)))
	if !refused.Stalled || refused.After <= 0 {
		t.Errorf("stalled: %t, again after %s", refused.Stalled, refused.After)
	}
}
