package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// generatedLists are the files outside of an operator's folder that list the operator, and
// that `make operator` writes besides go.work.
var generatedLists = regexp.MustCompile(`^(catalog/release/nova-example-operator/|charts/|cli/go\.mod|cli/cluster/operators\.go|` +
	`cli/internal/meaning/|config/control-plane/kustomization\.yaml|config/namespace/rolebindings\.yaml|docs/api\.md|tools/go\.mod|tools/lint/go\.work)`)

// TestSkeleton makes an operator in a copy of the repository. Its own tests pass, and nothing
// outside its folder is written by hand.
func TestSkeleton(t *testing.T) {
	copied := copyRepository(t)
	command(t, copied, "make", "--no-print-directory", "operator", "NAME=nova-example")
	t.Run("its tests pass", func(t *testing.T) {
		out := command(t, filepath.Join(copied, "operators/nova-example"), "go", "test", "-vet=off", "-v", "-run", "/(Golden|Conform)", "-skip", "TestSuite|TestAdmission", "./...")
		for _, test := range []string{"TestNovaExample/Golden/minimal", "TestNovaExample/Conform"} {
			if !strings.Contains(out, "--- PASS: "+test) {
				t.Errorf("%s has not run:\n%s", test, out)
			}
		}
	})
	t.Run("the CLI knows its kind", func(t *testing.T) {
		command(t, filepath.Join(copied, "cli"), "env", "GOWORK=off", "go", "test", "-vet=off", "./cluster")
	})
	t.Run("only its folder, go.work and generated files change", func(t *testing.T) {
		changed := map[string]bool{}
		for line := range strings.Lines(command(t, copied, "git", "status", "--porcelain", "--untracked-files=all")) {
			path := strings.TrimSpace(line[3:])
			changed[path] = true
			if path != "go.work" && !strings.HasPrefix(path, "operators/nova-example/") && !generatedLists.MatchString(path) {
				t.Errorf("%s changes", path)
			}
		}
		for _, path := range []string{"go.work", "cli/go.mod", "tools/go.mod", "tools/lint/go.work", "config/control-plane/kustomization.yaml", "config/namespace/rolebindings.yaml"} {
			if !changed[path] {
				t.Errorf("%s does not list the operator", path)
			}
		}
	})
}

// copyRepository returns a copy of the checkout with its files in one commit.
func copyRepository(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	command(t, root, "bash", "-c", `git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$0"`, folder)
	command(t, folder, "git", "init", "--quiet")
	command(t, folder, "git", "add", "--all")
	command(t, folder, "git", "-c", "user.name=test", "-c", "user.email=test@asterism.dev", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message=copy")
	return folder
}

// command runs a command without the settings of a make and of an API server around this test.
func command(t *testing.T, folder string, words ...string) string {
	t.Helper()
	program := exec.CommandContext(t.Context(), words[0], words[1:]...)
	program.Dir = folder
	program.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GNUMAKEFLAGS", "KUBECONFIG", "GOWORK"}, name)
	})
	out, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

func TestNamesInEveryForm(t *testing.T) {
	got := renaming("nova-serial-proxy")("nova-scheduler NovaScheduler novaschedulers nsched internal/scheduler/scheduler.go filter_scheduler")
	if want := "nova-serial-proxy NovaSerialProxy novaserialproxys nserialproxy internal/serialproxy/serialproxy.go filter_scheduler"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestOtherNamesAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"": "named after", "nova": "named after", "nova-Example": "named after", "../nova-example": "named after", "nova-api": "exists",
	} {
		if err := create(root, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
