package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPage checks that each example with a prompt in docs/cli.md is in a transcript, so that
// the page shows outputs of the program. An example may be the beginning of an output, and has
// the names of files of a user. The page has other examples without output: they succeed.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var transcripts strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		transcripts.Write(content)
	}
	known := strings.NewReplacer("testdata/release", ".release", "testdata/snippet/", "", "testdata/manifests/", "").Replace(transcripts.String())
	broken, err := filepath.Abs("testdata/broken")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // one writes a file
	examples, commands := 0, 0
	for i, block := range strings.Split(string(page), "\n```") {
		text := strings.TrimPrefix(block, "\n")
		if arguments, found := strings.CutPrefix(text, strings.TrimPrefix(prompt, "$ ")); i%2 == 1 && found {
			commands++
			var out, errOut bytes.Buffer
			if code := run(t.Context(), strings.Fields(arguments), newTestEnvironment(t, broken, &out, &errOut)); code != 0 {
				t.Errorf("%s: exit code %d: %s", text, code, &errOut)
			}
		}
		if i%2 == 1 && strings.HasPrefix(text, prompt) {
			examples++
			if !strings.Contains(known, text+"\n") {
				t.Errorf("no transcript contains this example:\n%s", text)
			}
		}
	}
	if examples < 5 || commands < 2 {
		t.Errorf("the page has %d examples with output and %d without", examples, commands)
	}
}

// TestProgramsRunAsThePagesSay checks that every command of helm and kubectl in a plan is in a
// page, so that both describe one installation.
func TestProgramsRunAsThePagesSay(t *testing.T) {
	pages := ""
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guides/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pages += string(content)
		}
	}
	pages = uniform(pages)
	worlds := inCheckout(t)
	commands := 0
	for _, c := range []struct{ world, arguments string }{
		{"uninstalled", "install --with helm --namespaces openstack --shared-volume"},
		{"uninstalled", "install --with kubectl -n openstack --shared-volume"},
		{"uninstalled", "install --with kubectl --from .demo/control-plane -n openstack"},
		{"installed-helm", "upgrade --with helm"},
		{"installed-kubectl", "upgrade --with kubectl"},
		{"installed-helm", "uninstall --with helm"},
		{"installed-kubectl", "uninstall --with kubectl --delete-crds"},
	} {
		for line := range strings.Lines(dryRun(t, filepath.Join(worlds, c.world), c.arguments)) {
			if !strings.HasPrefix(line, "helm ") && !strings.HasPrefix(line, "kubectl ") {
				continue
			}
			commands++
			if !strings.Contains(pages, uniform(line)) {
				t.Errorf("%s: no page has the command %s", c.arguments, line)
			}
		}
	}
	if commands < 20 {
		t.Errorf("the plans have only %d commands", commands)
	}
}

// uniform leaves out what the pages write in several forms: line breaks, the long name of -n,
// and the namespace. A repeated deletion ignores what is gone, and the time limit is the user's.
func uniform(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\\\n", " "), "--ignore-not-found ", "")
	text = strings.NewReplacer("--namespace ", "-n ", "team-a", "openstack", " --timeout 10m0s", "").Replace(text)
	return strings.Join(strings.Fields(text), " ")
}

// inCheckout makes a folder with a release the current one, and returns the folder of the
// worlds.
func inCheckout(t *testing.T) (worlds string) {
	t.Helper()
	worlds, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, ".release"), os.DirFS(newRelease(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, ".demo/control-plane"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".demo/control-plane/kustomization.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	return worlds
}

// dryRun returns a plan.
func dryRun(t *testing.T, world, arguments string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	env := newTestEnvironment(t, world, &out, &errOut)
	if code := run(context.Background(), append(strings.Fields(arguments), "--dry-run"), env); code != 0 {
		t.Fatalf("%s: %d %s", arguments, code, errOut.String())
	}
	return out.String()
}

// step begins a step of a plan.
var step = regexp.MustCompile(`(?m)^# .*$`)

// TestOLMGetsTheObjectsOfThePages compares the plan with the files that the pages apply.
func TestOLMGetsTheObjectsOfThePages(t *testing.T) {
	plan := dryRun(t, "testdata/uninstalled", "install --with olm --from testdata/release -n openstack --shared-volume")
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(step.ReplaceAllString(plan, "---")), 0o600); err != nil {
		t.Fatal(err)
	}
	planned := documents(t, path)
	for _, file := range []string{"config/operator-namespaces.yaml", "config/olm/control-plane.yaml", "config/olm/shared-volume.yaml"} {
		for _, want := range documents(t, filepath.Join(repository, file)) {
			if !slices.ContainsFunc(planned, func(o *unstructured.Unstructured) bool { return reflect.DeepEqual(o, want) }) {
				t.Errorf("the plan lacks %s %s of %s:\n%s", want.GetKind(), want.GetName(), file, plan)
			}
		}
	}
}
