package tree

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFirstIsTheStageThatReadyRepeats: Ready does not depend on every stage.
func TestFirstIsTheStageThatReadyRepeats(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Because", "message": message}
	}
	apart, failed := condition("Apart", "False", "a Job failed"), condition("APIReady", "False", "no pod")
	for name, c := range map[string]struct {
		conditions []any
		want       string
	}{
		"of two":                       {[]any{apart, failed, condition("Ready", "False", "no pod")}, "APIReady"},
		"of a ready object":            {[]any{apart, condition("Ready", "True", "")}, "Apart"},
		"of one that is not available": {[]any{apart, condition("Available", "False", "no"), condition("Ready", "True", "")}, "Available"},
		"without a stage":              {[]any{condition("APIReady", "True", ""), condition("Ready", "False", "no finalizer")}, "Ready"},
		"with another text":            {[]any{failed, apart, condition("Ready", "False", "being deleted")}, "APIReady"},
		"of an unknown one":            {[]any{condition("APIReady", "Unknown", ""), condition("Ready", "True", "")}, "Ready"},
		"without conditions":           {nil, ""},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": c.conditions}}}
		if got := First(o).Type; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
