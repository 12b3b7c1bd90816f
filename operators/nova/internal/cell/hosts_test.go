package cell

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func TestCountEvery(t *testing.T) {
	for name, c := range map[string]struct {
		hosts   *novav1.CellHosts
		changed time.Duration // since the condition changed
		want    time.Duration
	}{
		"not counted":     {nil, 0, 2 * time.Second},
		"mapped":          {&novav1.CellHosts{Mapped: 1}, 0, 10 * time.Second},
		"a compute comes": {&novav1.CellHosts{}, 30 * time.Second, 2 * time.Second},
		"a host comes":    {&novav1.CellHosts{Mapped: 1, Unmapped: 1}, 30 * time.Second, 2 * time.Second},
		"a mapping lost":  {&novav1.CellHosts{Unmapped: 1}, 2 * time.Minute, 10 * time.Second},
	} {
		cr := &novav1.NovaCell{}
		cr.Spec.Computes = []novav1.Compute{{Name: "fake", ComputeSettings: sharedv1.ComputeSettings{Driver: sharedv1.ComputeFake}}}
		cr.Status.Hosts = c.hosts
		cr.Status.Conditions = []metav1.Condition{{Type: novav1.ConditionHostsMapped, LastTransitionTime: metav1.NewTime(time.Now().Add(-c.changed))}}
		if got := countEvery(cr); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestConditionsOfAlertsAreShown: the metric asterism_condition has those of the alerts of cells.
func TestConditionsOfAlertsAreShown(t *testing.T) {
	rules, err := os.ReadFile("../../../../config/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shown, watched []string
	for _, stage := range Service.Stages {
		if stage.Shown {
			shown = append(shown, stage.Condition)
		}
	}
	for _, found := range regexp.MustCompile(`kind="NovaCell", condition="(\w+)"`).FindAllStringSubmatch(string(rules), -1) {
		watched = append(watched, found[1])
	}
	if !slices.Equal(shown, watched) {
		t.Errorf("the stages %v are Shown, and alerts watch %v", shown, watched)
	}
}
