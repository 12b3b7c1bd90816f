package openstackimage

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"asterism.dev/tools/internal/cache"
)

func TestKeyChangesWithEveryPartOfTheRecipe(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*recipe){
		"nothing":      func(*recipe) {},
		"image":        func(r *recipe) { r.Image += "x" },
		"suite":        func(r *recipe) { r.Suite += "x" },
		"packages":     func(r *recipe) { r.Packages = append(r.Packages, "tini") },
		"hosts":        func(r *recipe) { r.Hosts += "\n" },
		"dpkg":         func(r *recipe) { r.Dpkg += "\n" },
		"excluded":     func(r *recipe) { r.Excluded += "\n" },
		"add":          func(r *recipe) { r.Add += "\n" },
		"configure":    func(r *recipe) { r.Configure += "\n" },
		"addition":     func(r *recipe) { r.Additions = r.Additions[1:] },
		"server":       func(r *recipe) { r.Additions[0].Packages = nil },
		"script":       func(r *recipe) { r.Additions[0].Script = "false" },
		"variant":      func(r *recipe) { r.Variants = r.Variants[1:] },
		"galera":       func(r *recipe) { r.Additions, r.Variants = galera("bookworm", "amd64") },
		"removal":      func(r *recipe) { r.Variants[1].Without = nil },
		"user":         func(r *recipe) { r.Variants[0].Config.Config.User = "1" },
		"architecture": func(r *recipe) { *r = newRecipe("bookworm", "arm64") },
		"release":      func(r *recipe) { *r = newRecipe("trixie", "amd64") },
	} {
		recipe := newRecipe("bookworm", "amd64")
		change(&recipe)
		key, err := keyOf(recipe)
		if err != nil {
			t.Fatal(err)
		}
		if other, found := seen[key]; found {
			t.Errorf("changing %s and changing %s give the same key %s", name, other, key)
		}
		seen[key] = name
	}
}

func TestKeyIsStable(t *testing.T) {
	first, err := keyOf(newRecipe("bookworm", "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := keyOf(newRecipe("bookworm", "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	if first != second || len(first) != 16 {
		t.Errorf("keys %q and %q", first, second)
	}
}

func TestScriptsAreValidShell(t *testing.T) {
	for name, script := range map[string]string{"hosts": hostsScript, "add.sh": addScript, "configure.sh": configureScript, "kolla.sh": kollaScript, "kolla_start": kollaStart} {
		if output, err := exec.Command("sh", "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}

// fillCache creates a cache with the image.
func fillCache(t *testing.T, content string) {
	t.Helper()
	t.Setenv("ASTERISM_CACHE", t.TempDir())
	key, err := keyOf(newRecipe("bookworm", runtime.GOARCH).base)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := cache.Dir("images")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, key+".tar"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCachedImageIsPublishedWithoutBuilding(t *testing.T) {
	fillCache(t, "the image")
	output := filepath.Join(t.TempDir(), "new", "openstack.tar")
	for range 2 { // the second time the output exists
		var log bytes.Buffer
		if err := Write(context.Background(), Options{Release: "bookworm", Output: output, Log: &log}); err != nil {
			t.Fatal(err)
		}
		if log.Len() > 0 {
			t.Errorf("a cached image was built: %s", log.String())
		}
		content, err := os.ReadFile(output)
		if err != nil || string(content) != "the image" {
			t.Errorf("published %q, %v", content, err)
		}
	}
	files, err := os.ReadDir(filepath.Dir(output))
	if err != nil || len(files) != 1 {
		t.Errorf("other files next to the image: %v, %v", files, err)
	}
}

func TestOldOutputIsReplaced(t *testing.T) {
	fillCache(t, "the new image")
	output := filepath.Join(t.TempDir(), "openstack.tar")
	if err := os.WriteFile(output, []byte("an older image"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(context.Background(), Options{Release: "bookworm", Output: output, Log: &bytes.Buffer{}}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(output); err != nil || string(content) != "the new image" {
		t.Errorf("published %q, %v", content, err)
	}
}

func TestUnknownReleaseIsRefused(t *testing.T) {
	fillCache(t, "the image")
	err := Write(context.Background(), Options{Release: "potato", Output: filepath.Join(t.TempDir(), "openstack.tar"), Log: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), `no image is made of Debian "potato": choose one of trixie, bookworm, forky, sid`) {
		t.Errorf("got %v", err)
	}
}

func TestFailedStepShowsTheLastLinesOfItsLog(t *testing.T) {
	build := build{dir: filepath.Join(t.TempDir(), "key.building")}
	err := build.logged(exec.Command("sh", "-c", "seq 100; echo no such package >&2; exit 3"))
	if err == nil {
		t.Fatal("a failed step returned no error")
	}
	for _, want := range []string{"no such package", "exit status 3", ".building.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n50\n") {
		t.Error("the error contains the whole log")
	}
}
