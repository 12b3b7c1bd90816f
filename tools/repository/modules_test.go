// Package repository tests what no single module can: how the modules fit together.
package repository

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const root = "../.."

// foreign are the modules that pin programs of other projects, at these projects' versions.
// They share no package with the operators.
var foreign = []string{"tools/efs-driver", "tools/lint", "tools/olm", "tools/docs/site"}

// Equal versions everywhere let Kubernetes, the operators, the CLI and the tools share one
// compilation: the key of a compiled package contains the versions of all that it imports.
func TestModulesAgreeAboutVersions(t *testing.T) {
	users := map[string]map[string][]string{} // dependency, version, modules
	for _, module := range modules(t) {
		for _, require := range parse(t, module).Require {
			path, version := require.Mod.Path, require.Mod.Version
			if users[path] == nil {
				users[path] = map[string][]string{}
			}
			users[path][version] = append(users[path][version], module)
		}
	}
	if len(users["k8s.io/client-go"]) == 0 {
		t.Fatal("no module requires k8s.io/client-go: the search is broken")
	}
	for path, versions := range users {
		if len(versions) > 1 {
			t.Errorf("%s has %d versions. Raise all to the newest one, and run `make tidy`:%s", path, len(versions), list(versions))
		}
	}
}

// Only nova and meta may import other operators. A module cannot import a module that it does
// not require.
func TestServicesRequireNoOtherOperator(t *testing.T) {
	const operators = "asterism.dev/operators/"
	requiring := map[string]bool{}
	for _, module := range modules(t) {
		name, isOperator := strings.CutPrefix(module, "operators/")
		if !isOperator {
			continue
		}
		for _, require := range parse(t, module).Require {
			if !strings.HasPrefix(require.Mod.Path, operators) {
				continue
			}
			requiring[name] = true
			if name != "nova" && name != "meta" {
				t.Errorf("%s/go.mod requires %s: a service operator knows no other operator", module, require.Mod.Path)
			}
		}
	}
	if !requiring["nova"] || !requiring["meta"] {
		t.Errorf("operators with requirements: %v; want nova and meta: the search is broken", requiring)
	}
}

// The workspace of the repository, and that of the linters.
func TestWorkspacesHaveEveryOperatorAndLibrary(t *testing.T) {
	for _, folder := range []string{".", "tools/lint"} {
		path := filepath.Join(folder, "go.work")
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		work, err := modfile.ParseWork(path, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		var used []string
		for _, use := range work.Use {
			used = append(used, filepath.Join(folder, use.Path))
		}
		for _, module := range modules(t) {
			if (strings.HasPrefix(module, "operators/") || strings.HasPrefix(module, "lib/")) && !slices.Contains(used, module) {
				t.Errorf("%s lacks %s: in %s, type: go work use %s", path, module, folder, relative(t, folder, module))
			}
		}
	}
}

func relative(t *testing.T, folder, module string) string {
	t.Helper()
	path, err := filepath.Rel(folder, module)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// modules lists the folders with a go.mod, except those of other projects' programs.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.Name() == "go.mod":
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err == nil && !slices.Contains(foreign, folder) {
				folders = append(folders, folder)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func parse(t *testing.T, module string) *modfile.File {
	t.Helper()
	path := filepath.Join(root, module, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func list(versions map[string][]string) string {
	var text strings.Builder
	for version, modules := range versions {
		fmt.Fprintf(&text, "\n  %s in %s", version, strings.Join(modules, ", "))
	}
	return text.String()
}
