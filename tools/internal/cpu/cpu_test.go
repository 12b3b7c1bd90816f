package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run writes the files of a process. The times are in hundredths of a second.
func run(t *testing.T, proc string, pid, parent, user, children int) {
	t.Helper()
	folder := filepath.Join(proc, fmt.Sprint(pid))
	write(t, "A=b\x00ASTERISM_CLUSTER_DIR=/c\x00", folder, "environ")
	write(t, "program\x00", folder, "cmdline")
	write(t, fmt.Sprintf("%d (a (b) c) S %d 1 1 0 -1 0 0 0 0 0 %d 20 %d 3 20 0 1 0 777 0", pid, parent, user, children), folder, "stat")
}

func TestClustersCountProcessesAndPods(t *testing.T) {
	proc, cgroups := t.TempDir(), t.TempDir()
	run(t, proc, 10, 1, 100, 50)
	write(t, "A=b\x00", proc, "99", "environ") // no cluster's
	c := newClusters(proc, cgroups)
	expect := func(what string, want time.Duration, wantPods bool) {
		t.Helper()
		c.look()
		if c.used.Round(time.Millisecond) != want || c.pods != wantPods {
			t.Errorf("%s: got %s, pods %v; want %s, %v", what, c.used, c.pods, want, wantPods)
		}
	}
	expect("nothing happened", 0, false)
	run(t, proc, 10, 1, 400, 50)
	expect("3 s of user time", 3*time.Second, false)
	run(t, proc, 11, 10, 5000, 0)
	expect("a child, whose time the parent will have", 3*time.Second, false)
	run(t, proc, 12, 1, 77, 0)
	expect("a new process of 1 s", 4*time.Second, false)
	if err := os.RemoveAll(filepath.Join(proc, "10")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(proc, "11")); err != nil {
		t.Fatal(err)
	}
	expect("an ended process keeps its time", 4*time.Second, false)
	usage := []string{cgroups, "cpuacct", podsCgroup, "cpuacct.usage"}
	write(t, "2000000000\n", usage...)
	expect("2 s of pods", 6*time.Second, true)
	write(t, "500000000\n", usage...)
	expect("a new cgroup with 0.5 s", 6500*time.Millisecond, true)
}

func TestPodsOfVersion2(t *testing.T) {
	cgroups := t.TempDir()
	write(t, "user_usec 1\nusage_usec 1000000\nsystem_usec 2\n", cgroups, podsCgroup, "cpu.stat")
	c := newClusters(t.TempDir(), cgroups)
	write(t, "user_usec 1\nusage_usec 4000000\nsystem_usec 2\n", cgroups, podsCgroup, "cpu.stat")
	if c.look(); c.used != 3*time.Second || !c.pods {
		t.Errorf("got %s, pods %v", c.used, c.pods)
	}
}

func TestOwnContainsEndedPrograms(t *testing.T) {
	before := Own()
	command := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'")
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	program := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	if spent := Own() - before; program == 0 || spent < program {
		t.Errorf("got %s, although the program used %s", spent, program)
	}
}

func TestTableHasALineForEachRow(t *testing.T) {
	rows := Costliest([]Row{{"cheap", 9 * time.Second, 0}, {"a " + strings.Repeat("long ", 20), time.Second, 2 * time.Second}, {"dear", time.Second, time.Minute}}, 2)
	var out strings.Builder
	if err := WriteTable(&out, rows...); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "dear 1 60" || !strings.HasPrefix(lines[2], "a long") {
		t.Errorf("got\n%s", out.String())
	}
	for _, line := range lines {
		if len(line) > 79 {
			t.Errorf("%d letters: %s", len(line), line)
		}
	}
}
