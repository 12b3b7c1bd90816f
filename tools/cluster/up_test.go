package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

func TestOutdated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"etcd", "--name=a"}
	for name, test := range map[string]struct {
		process process.Process
		want    string
	}{
		"current":                {process.Process{Args: args, Started: time.Now()}, ""},
		"other arguments":        {process.Process{Args: args[:1], Started: time.Now()}, "its arguments changed"},
		"older than a read file": {process.Process{Args: args, Started: time.Now().Add(-time.Minute)}, file + " changed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outdated(&test.process, component{args: args, files: []string{file}}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFullClusterStaysFull(t *testing.T) {
	for _, test := range []struct {
		was              mode
		controlPlaneOnly bool
		want             mode
	}{
		{"", true, controlPlane},
		{"", false, full},
		{controlPlane, true, controlPlane},
		{controlPlane, false, full},
		{full, true, full},
	} {
		c := &cluster{dir: t.TempDir(), progress: progress.New(io.Discard, 0)}
		if test.was != "" {
			if err := (&state{Mode: test.was}).write(c.dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.loadState(t.Context(), test.controlPlaneOnly); err != nil {
			t.Fatal(err)
		}
		if c.state.Mode != test.want {
			t.Errorf("%q, control plane only %t: got %q, want %q", test.was, test.controlPlaneOnly, c.state.Mode, test.want)
		}
	}
}

func TestPortsAreDistinctFreeAndBelowTheNodePorts(t *testing.T) {
	asked := 0
	ports, err := choosePorts(portNames, func(int) bool { asked++; return asked%2 == 0 })
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	for _, name := range portNames {
		port := ports[name]
		if port < firstPort || port > lastPort || slices.Contains(seen, port) {
			t.Errorf("%s has port %d after %v", name, port, seen)
		}
		seen = append(seen, port)
	}
	if _, err := choosePorts(portNames, func(int) bool { return false }); err == nil {
		t.Error("ports are chosen although none is free")
	}
}

func TestTakenPort(t *testing.T) {
	ports := map[string]int{}
	for i, name := range portNames {
		ports[name] = 20000 + i
	}
	running := []process.Process{{Component: "etcd", Leader: true}}
	busy := func(names ...string) func(int) bool {
		return func(port int) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return ports[name] == port })
		}
	}
	for name, test := range map[string]struct {
		busy []string
		want string
	}{
		"all free":                {nil, ""},
		"by the component itself": {[]string{"etcd", "etcd-peer"}, ""},
		"by another program":      {[]string{"kube-apiserver"}, "kube-apiserver"},
		"a second port of a component that is down": {[]string{"kube-proxy-metrics"}, "kube-proxy-metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := takenPort(ports, running, busy(test.busy...)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFolderIsClosedToOtherUsers(t *testing.T) {
	created := filepath.Join(t.TempDir(), "parent", "cluster")
	if err := protect(created); err != nil {
		t.Fatal(err)
	}
	existing := t.TempDir() // as an earlier version left it, with a state at which up stops early
	if err := os.WriteFile(filepath.Join(existing, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(existing, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{dir: existing, progress: progress.New(io.Discard, 0)}
	if err := c.up(t.Context(), true); err == nil || !strings.Contains(err.Error(), stateFile) {
		t.Fatalf("up does not stop at the state: %v", err)
	}
	for _, folder := range []string{created, existing} {
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("other users can enter %s: %v, %v", folder, info.Mode(), err)
		}
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		files   []string
		refused bool
	}{
		"empty":                    {nil, false},
		"a cluster's":              {[]string{stateFile, "etcd"}, false},
		"left by a killed command": {[]string{lockFile}, false},
		"foreign file":             {[]string{"thesis.tex"}, true},
		"foreign file and lock":    {[]string{lockFile, "thesis.tex"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{dir: t.TempDir(), progress: progress.New(io.Discard, 0)}
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(c.dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := c.checkDirectory()
			if (err != nil) != test.refused {
				t.Errorf("got %v, want refused: %t", err, test.refused)
			}
			if err != nil && !strings.Contains(err.Error(), "thesis.tex") {
				t.Errorf("the error does not name the foreign file: %v", err)
			}
		})
	}
}
