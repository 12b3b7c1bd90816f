package release

import (
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

func TestImagesHaveTheLicensesOfModules(t *testing.T) {
	const linked = "go.yaml.in/yaml/v3"
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", linked).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &release{Options: Options{Root: root}}
	program := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "asterism.dev/lib/common", Version: "(devel)"},
		{Path: "example.dev/replaced", Replace: &debug.Module{Path: linked, Version: strings.TrimSpace(string(version)), Sum: "h1:"}},
	}}
	found, err := r.licenses(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, file := range found {
		paths[file.Path] = len(file.Content) > 0
	}
	for _, path := range []string{"licenses/LICENSE", "licenses/go/LICENSE", "licenses/" + linked + "/LICENSE", "licenses/" + linked + "/NOTICE"} {
		if !paths[path] {
			t.Errorf("no %s in %v", path, paths)
		}
	}
	program.Deps[1].Replace.Version = "v0.0.1"
	if _, err := r.licenses(t.Context(), program); err == nil || !strings.Contains(err.Error(), linked+"@v0.0.1") {
		t.Errorf("a module that the cache lacks: %v", err)
	}
	if _, err := licensesIn(t.TempDir(), "licenses"); err == nil || !strings.Contains(err.Error(), "no license file") {
		t.Errorf("a module without a license file: %v", err)
	}
}
