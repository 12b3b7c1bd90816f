package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"asterism.dev/tools/internal/progress"
)

// copyPause makes a copy of the module pause that a test may change.
func copyPause(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(filepath.Join(root, binariesPath, "pause"), os.DirFS("binaries/pause")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestTwoCallersBuildOnce(t *testing.T) {
	root, cache := copyPause(t), t.TempDir()
	var reports [2]bytes.Buffer
	var callers sync.WaitGroup
	for i := range reports {
		callers.Go(func() {
			b, err := newBuild(root, cache, pauseProject)
			if err == nil {
				err = b.make(t.Context(), progress.New(&reports[i], 0))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if count := strings.Count(reports[0].String()+reports[1].String(), "] building pause (once for this version) …"); count != 1 {
		t.Errorf("built %d times:\n%s%s", count, reports[0].String(), reports[1].String())
	}
	built, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	if err != nil || len(built) != 1 || filepath.Base(built[0]) != "pause" {
		t.Errorf("the cache contains %v (%v), want one binary", built, err)
	}
	if folders, err := os.ReadDir(cache); err != nil || len(folders) != 1 {
		t.Errorf("the cache contains %v (%v), want one folder and no leftover", folders, err)
	}
}

func TestBinariesOfAnotherVersionAreNotUsed(t *testing.T) {
	root, cache := copyPause(t), t.TempDir()
	before, err := newBuild(root, cache, pauseProject)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(root, binariesPath, "pause", "main.go")
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, append(content, "// changed\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := newBuild(root, cache, pauseProject)
	if err != nil {
		t.Fatal(err)
	}
	if before.target == after.target {
		t.Errorf("both versions use %s", before.target)
	}
}

func TestFailedBuildReportsTheCompilersErrorAndLeavesNoBinary(t *testing.T) {
	root, cache := copyPause(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, binariesPath, "pause", "broken.go"), []byte("package main\nvar x int = no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := newBuild(root, cache, pauseProject)
	if err != nil {
		t.Fatal(err)
	}
	err = b.make(t.Context(), progress.New(&bytes.Buffer{}, 0))
	if err == nil || !strings.Contains(err.Error(), "undefined: no") {
		t.Errorf("got %v, want the compiler's error", err)
	}
	if b.complete() {
		t.Error("the failed build left a target")
	}
}

func TestKubernetesReportsItsVersion(t *testing.T) {
	flags := kubernetesVersion("v1.37.1")
	for _, want := range []string{"component-base/version.gitVersion=v1.37.1", "gitMajor=1 ", "gitMinor=37 ", "client-go/pkg/version.gitVersion=v1.37.1"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q lacks %q", flags, want)
		}
	}
}
