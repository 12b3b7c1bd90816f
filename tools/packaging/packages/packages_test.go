package packages

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"asterism.dev/tools/internal/source"
)

const root = "../../.."

func readProject(t *testing.T) *source.Project {
	t.Helper()
	project, err := source.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// write returns a folder with the packages of the project's version, with images by tag.
func write(t *testing.T) string {
	t.Helper()
	project, folder := readProject(t), t.TempDir()
	if err := Write(project, source.ImagesOf(project), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// contents are the contents of files by their paths in a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		all[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func expectSame(t *testing.T, about string, got, want map[string]string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: no files", about)
	}
	for path, content := range want {
		if written, found := got[path]; !found {
			t.Errorf("%s: %s is missing", about, path)
		} else if written != content {
			t.Errorf("%s: %s differs", about, path)
		}
	}
	for path := range got {
		if _, found := want[path]; !found {
			t.Errorf("%s: %s is unexpected", about, path)
		}
	}
}

// TestPackages also fails if a committed package is stale.
func TestPackages(t *testing.T) {
	folder := write(t)
	t.Run("the same in each run", func(t *testing.T) {
		expectSame(t, "second run", contents(t, write(t)), contents(t, folder))
	})
	t.Run("the same in the repository", func(t *testing.T) {
		const stale = "; after a change of config, type: make generate-packages"
		expectSame(t, "charts"+stale, contents(t, filepath.Join(root, "charts")), contents(t, filepath.Join(folder, Charts)))
		expectSame(t, "catalog"+stale, contents(t, filepath.Join(root, "catalog/release")), contents(t, filepath.Join(folder, "catalog/release")))
		for _, operator := range readProject(t).Operators {
			committed := contents(t, filepath.Join(root, "operators", operator.Name, "bundle"))
			expectSame(t, operator.Package()+stale, committed, contents(t, filepath.Join(folder, Bundles, operator.Package())))
		}
	})
}

// TestFilesOfAnEarlierRunAreRemoved: the folder of a release is written twice.
func TestFilesOfAnEarlierRunAreRemoved(t *testing.T) {
	folder, project := t.TempDir(), readProject(t)
	if err := os.WriteFile(filepath.Join(folder, "gone.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteManifests(project, source.ImagesOf(project), folder); err != nil {
		t.Fatal(err)
	}
	var names []string
	for path := range contents(t, folder) {
		names = append(names, path)
	}
	slices.Sort(names)
	if got, want := strings.Join(names, " "), "install.yaml namespace.yaml policies.yaml run-on-host.yaml shared-volume.yaml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
