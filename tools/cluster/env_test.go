package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnvCanBeSourcedTwice(t *testing.T) {
	c := &cluster{dir: filepath.Join(t.TempDir(), `it's "$HOME" here`), folders: []string{"/cache/a b", "/cache/c"}}
	c.state = &state{Mode: full}
	if err := c.writeEnv(); err != nil {
		t.Fatal(err)
	}
	script := `PATH=/bin; . "$1"; . "$1"; printf '%s\n' "$KUBECONFIG" "$PATH" "$CONTAINERD_ADDRESS"`
	output, err := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script, "sh", c.envFile()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	want := []string{filepath.Join(c.dir, "kubeconfig"), "/cache/a b:/cache/c:/bin", containerdSocket}
	if got := strings.TrimSpace(string(output)); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
