package main

import (
	"strings"
	"testing"
	"time"
)

func TestTreeShowsChildrenInTheOrderOfCreation(t *testing.T) {
	f := readObjectTree(t, "ready.yaml")
	var out strings.Builder
	if err := f.write(&out, f.find("ControlPlane", "demo"), time.Date(2026, 1, 1, 10, 1, 40, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := `
NAME                                           READY     AVAILABLE  MESSAGE  AGE
ControlPlane/demo                              True      True                100s
└─Nova/demo                                    True      True                99s
  ├─NovaConductor/demo-superconductor          True                          98s
  │ ├─Job/demo-superconductor-db-1234abcd      Complete                      97s
  │ └─StatefulSet/demo-superconductor          1/1                           80s
  └─NovaScheduler/demo-scheduler               True                          60s
`
	if got := "\n" + out.String(); trimmed(got) != trimmed(want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestTreeShowsTheMessageOfAnObjectThatIsNotReady(t *testing.T) {
	f := readObjectTree(t, "own-trouble.yaml")
	var out strings.Builder
	if err := f.write(&out, f.find("Nova", "demo"), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Nova/demo", "False", "keystone.openstack.svc:5000: connection refused", "└─NovaConductor/demo-superconductor"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// trimmed reduces the spaces between columns and removes those at the end of lines.
func trimmed(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		stem := line[:len(line)-len(strings.TrimLeft(line, " │├└─"))]
		lines = append(lines, stem+strings.Join(strings.Fields(strings.TrimPrefix(line, stem)), " "))
	}
	return strings.Join(lines, "\n")
}
