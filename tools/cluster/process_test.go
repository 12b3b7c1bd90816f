package main

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
func startSleeper(t *testing.T, dir, component string) process {
	t.Helper()
	ended, err := start(dir, component, []string{"/bin/sh", "-c", "sleep 300 & wait"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range list(t, dir) {
			if err := p.signal(dir, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err == nil {
			t.Error("the shell was not killed")
		}
	})
	eventually(t, "the shell and its child run", func() bool { return len(list(t, dir)) == 2 })
	return *find(list(t, dir), component)
}

func list(t *testing.T, dir string) []process {
	t.Helper()
	all, err := processes(dir)
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
	err := poll(ctx, 10*time.Millisecond, func() error {
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
	dir := t.TempDir()
	p := startSleeper(t, dir, "kube-apiserver")
	if want := []string{"/bin/sh", "-c", "sleep 300 & wait"}; !slices.Equal(p.args, want) {
		t.Errorf("found %q, want the component itself: %q", p.args, want)
	}
	if age := time.Since(p.started); age < 0 || age > time.Minute {
		t.Errorf("a process started just now is %s old", age)
	}
	if find(list(t, dir), "etcd") != nil {
		t.Error("a component that was not started is found")
	}
	if found := list(t, t.TempDir()); len(found) > 0 {
		t.Errorf("another cluster finds %v", found)
	}
}

func TestComponentHasItsOwnSession(t *testing.T) {
	dir := t.TempDir()
	if p := startSleeper(t, dir, "etcd"); !p.leader {
		t.Error("etcd is in the session of this command and would end with its terminal")
	}
}

func TestRecycledPidIsNotSignalled(t *testing.T) {
	dir := t.TempDir()
	p := startSleeper(t, dir, "etcd")
	earlier := p
	earlier.ticks = "1"
	if err := earlier.signal(dir, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	foreign := exec.CommandContext(t.Context(), "sleep", "300")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- foreign.Wait() }()
	recycled := p
	recycled.pid = foreign.Process.Pid
	if err := recycled.signal(dir, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// SIGTERM is the reported cause only if SIGKILL was not sent before.
	if err := foreign.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("a process outside of the cluster was killed: %v", err)
	}
	if now := find(list(t, dir), "etcd"); now == nil || now.pid != p.pid {
		t.Error("a process was killed although its start time differs")
	}
}

func TestStopEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	p := startSleeper(t, dir, "etcd")
	if err := p.stop(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if find(list(t, dir), "etcd") != nil {
		t.Error("etcd still runs after stop")
	}
}
