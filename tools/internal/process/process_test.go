package process

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// startSleeper runs a shell that waits for a child, as the component of a cluster in dir.
func startSleeper(t *testing.T, dir, component string) Process {
	t.Helper()
	ended, err := Start(dir, component, []string{"/bin/sh", "-c", "sleep 300 & wait"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range list(t, dir) {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err == nil {
			t.Error("the shell was not killed")
		}
	})
	eventually(t, "the shell and its child run", func() bool { return len(list(t, dir)) == 2 })
	return *Find(list(t, dir), component)
}

func list(t *testing.T, dir string) []Process {
	t.Helper()
	all, err := Of(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// patience is long, because other suites run at the same time: it only bounds a failure.
const patience = 2 * time.Minute

func eventually(t *testing.T, claim string, check func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := Poll(ctx, 10*time.Millisecond, func() error {
		if !check() {
			return fmt.Errorf("not true within %s", patience)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", claim, err)
	}
}

func TestComponentIsFoundByItsNameAndNotByItsChildren(t *testing.T) {
	dir, began := t.TempDir(), time.Now()
	p := startSleeper(t, dir, "kube-apiserver")
	if want := []string{"/bin/sh", "-c", "sleep 300 & wait"}; !slices.Equal(p.Args, want) {
		t.Errorf("found %q, want the component itself: %q", p.Args, want)
	}
	if p.Started.Before(began.Add(-time.Second)) || p.Started.After(time.Now().Add(10*time.Second)) { // exact to some hundredths of a second, and to a pause of this program
		t.Errorf("a process started after %s has begun at %s", began, p.Started)
	}
	if Find(list(t, dir), "etcd") != nil {
		t.Error("a component that was not started is found")
	}
	if found := list(t, t.TempDir()); len(found) > 0 {
		t.Errorf("another cluster finds %v", found)
	}
}

func TestComponentHasItsOwnSession(t *testing.T) {
	dir := t.TempDir()
	if p := startSleeper(t, dir, "etcd"); !p.Leader {
		t.Error("etcd is in the session of this command and would end with its terminal")
	}
}

func TestRecycledPidIsNotSignalled(t *testing.T) {
	dir := t.TempDir()
	p := startSleeper(t, dir, "etcd")
	earlier := p
	earlier.Ticks = "1"
	if err := earlier.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	foreign := exec.CommandContext(t.Context(), "sleep", "300")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- foreign.Wait() }()
	recycled := p
	recycled.PID = foreign.Process.Pid
	if err := recycled.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// SIGTERM is the reported cause only if SIGKILL was not sent before.
	if err := foreign.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("a process outside the cluster was killed: %v", err)
	}
	if now := Find(list(t, dir), "etcd"); now == nil || now.PID != p.PID {
		t.Error("a process was killed although its start time differs")
	}
}

func TestStopEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	p := startSleeper(t, dir, "etcd")
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if Find(list(t, dir), "etcd") != nil {
		t.Error("etcd still runs after stop")
	}
}
