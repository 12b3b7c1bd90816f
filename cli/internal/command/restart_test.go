package command

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
)

// TestRestartChangesOneKey: the operator of Nova has keys of its own in restartTriggers.
func TestRestartChangesOneKey(t *testing.T) {
	for flag, want := range map[string]string{"--dry-run=none": "2026-01-31T10:00:00Z", "--dry-run=server": ""} {
		var out, errOut bytes.Buffer
		env := newTestEnvironment(t, "testdata/ready", &out, &errOut)
		access, err := env.connect()
		if err != nil {
			t.Fatal(err)
		}
		name := types.NamespacedName{Namespace: "openstack", Name: "demo-scheduler"}
		scheduler := &schedulerv1.NovaScheduler{}
		if err := access.Get(t.Context(), name, scheduler); err != nil {
			t.Fatal(err)
		}
		scheduler.Spec.RestartTriggers = map[string]string{"cell1": "a"}
		if err := access.Update(t.Context(), scheduler); err != nil {
			t.Fatal(err)
		}
		if code := run(t.Context(), []string{"restart", "demo-scheduler", flag}, env); code != 0 {
			t.Fatalf("exit code %d: %s", code, &errOut)
		}
		if err := access.Get(t.Context(), name, scheduler); err != nil {
			t.Fatal(err)
		}
		if got := scheduler.Spec.RestartTriggers; got["cell1"] != "a" || got[restartKey] != want {
			t.Errorf("%s: restartTriggers are %v", flag, got)
		}
	}
}

// TestComputesDoNotRestart: a NovaCompute has no restartTriggers.
func TestComputesDoNotRestart(t *testing.T) {
	var out, errOut bytes.Buffer
	env := newTestEnvironment(t, "testdata/ready", &out, &errOut)
	access, err := env.connect()
	if err != nil {
		t.Fatal(err)
	}
	compute := &computev1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "compute"}}
	if err := access.Create(t.Context(), compute); err != nil {
		t.Fatal(err)
	}
	code := run(t.Context(), []string{"restart", "novacompute/compute"}, env)
	if code != codeError || out.Len() > 0 || !strings.Contains(errOut.String(), "NovaCompute/compute is not restarted: it has no restartTriggers") {
		t.Errorf("exit code %d: %s%s", code, &out, &errOut)
	}
}

// TestAPausedServiceAlone: the objects above have the reason of the one that is paused.
func TestAPausedServiceAlone(t *testing.T) {
	for arguments, want := range map[string]string{
		"restart novascheduler/demo-scheduler": "NovaScheduler/demo-scheduler is paused, so nothing is restarted: remove spec.paused of NovaScheduler/demo-scheduler first",
		"restart controlplane/demo":            "NovaScheduler/demo-scheduler is paused, so nothing is restarted: remove spec.paused of NovaScheduler/demo-scheduler first",
		"restart novaapi/demo-api":             "",
	} {
		var out, errOut bytes.Buffer
		env := newTestEnvironment(t, "testdata/paused-alone", &out, &errOut)
		code := run(t.Context(), strings.Fields(arguments), env)
		if (code == 0) != (want == "") || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: exit code %d: %s%s", arguments, code, &out, &errOut)
		}
	}
}
