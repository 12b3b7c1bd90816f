package kolla_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"asterism.dev/lib/common/kolla"
)

// place writes an executable file.
func place(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func scripts(t *testing.T, command ...string) map[string]string {
	t.Helper()
	scripts, err := kolla.Scripts(command)
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// TestRunOnHostNeedsTheNode: in its own container, run-on-host would run itself for ever.
// test/e2e runs the script on a node.
func TestRunOnHostNeedsTheNode(t *testing.T) {
	g := NewWithT(t)
	out, err := exec.CommandContext(t.Context(), place(t, "iscsiadm", scripts(t, "x")["run-on-host"]), "-m", "session").CombinedOutput()
	var failure *exec.ExitError
	g.Expect(err).To(BeAssignableToTypeOf(failure))
	g.Expect(out).To(ContainSubstring("run-on-host: "))
	g.Expect(out).To(ContainSubstring("iscsiadm of the node"))
	g.Expect(err).To(MatchError("exit status 126"))
}

func TestImageStartsByKollaIfItHasKolla(t *testing.T) {
	g := NewWithT(t)
	start := place(t, "start-kolla", scripts(t, "x")["start-kolla"])
	run := func(path string) string {
		command := exec.CommandContext(t.Context(), start, "echo", "the command", "of the service")
		command.Env = []string{"PATH=" + path + ":/usr/bin:/bin"}
		out, err := command.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred())
		return string(out)
	}
	g.Expect(run(t.TempDir())).To(Equal("the command of the service\n"))
	entry := place(t, kolla.EntryPoint, "#!/bin/sh\necho kolla: $# arguments\n")
	g.Expect(run(filepath.Dir(entry))).To(Equal("kolla: 0 arguments\n"))
}

func TestScriptsRefuseACommandThatKollaWouldChange(t *testing.T) {
	g := NewWithT(t)
	_, err := kolla.Scripts([]string{"sh", "-c", "a b"})
	g.Expect(err).To(MatchError(ContainSubstring(`"a b" has white space`)))
}
