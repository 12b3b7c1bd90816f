package compute

import (
	"os/exec"
	"regexp"
	"testing"
)

var ranTests = regexp.MustCompile(`(?m)^Ran [1-9][0-9]* tests? in `)

// TestRemove runs the unit tests of remove.py.
func TestRemove(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "testdata/remove_test.py").CombinedOutput()
	if err != nil || !ranTests.Match(output) {
		t.Fatalf("error: %v\n%s", err, output)
	}
}
