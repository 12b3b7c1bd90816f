package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGuestBootsOnThisMachineOnly: its steps need only steps of the list, and an existing cluster,
// whose nodes are other machines, is refused.
func TestGuestBootsOnThisMachineOnly(t *testing.T) {
	for _, setting := range []string{"", "1"} {
		t.Setenv("LIBVIRT", setting)
		t.Setenv("CLUSTER", "")
		d, err := newDemo(t.TempDir(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var names, needs []string
		for _, s := range d.steps() {
			names, needs = append(names, s.name), append(needs, s.needs...)
		}
		if slices.Contains(names, stepGuest) != (setting != "") {
			t.Errorf("LIBVIRT=%s has the steps %q", setting, names)
		}
		for _, need := range needs {
			if !slices.Contains(names, need) {
				t.Errorf("LIBVIRT=%s lacks the step %q", setting, need)
			}
		}
	}
	t.Setenv("CLUSTER", "existing")
	if _, err := newDemo(t.TempDir(), time.Minute); err == nil || !strings.Contains(err.Error(), "LIBVIRT") {
		t.Errorf("an existing cluster with LIBVIRT: %v", err)
	}
}
