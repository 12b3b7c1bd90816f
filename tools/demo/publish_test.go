package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"asterism.dev/tools/internal/source"
)

// inTinyCopy is inCopy with a tiny program in place of each operator and of the tools: the images
// and the manifests do not depend on what the programs do.
func inTinyCopy(t *testing.T) *demo {
	t.Helper()
	d := inCopy(t)
	d.env, d.tags = os.Environ(), nil
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(d.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := func(module, folder string) {
		write(filepath.Join(module, "go.mod"), "module example.dev/"+filepath.Base(module)+"\n")
		write(filepath.Join(module, folder, "main.go"), "package main\n\nfunc main() { println(`"+module+"`) }\n")
	}
	workspace := ""
	modules, err := filepath.Glob(filepath.Join(d.root, "operators", "*", "go.mod"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no module of an operator, %v", err)
	}
	for _, module := range modules {
		folder := filepath.Join("operators", filepath.Base(filepath.Dir(module)))
		if err := os.RemoveAll(filepath.Join(d.root, folder, "cmd")); err != nil {
			t.Fatal(err)
		}
		program(folder, "cmd")
		workspace += "use ./" + folder + "\n"
	}
	write("go.work", workspace)
	program("tools", "images")
	return d
}

// imagesIn returns the images of all containers in an object.
func imagesIn(value any) (images []string) {
	switch value := value.(type) {
	case map[string]any:
		if image, is := value["image"].(string); is {
			images = append(images, image)
		}
		for _, field := range value {
			images = append(images, imagesIn(field)...)
		}
	case []any:
		for _, entry := range value {
			images = append(images, imagesIn(entry)...)
		}
	}
	return images
}

// pull reads an image as a node does, and compares each digest with the content.
func pull(image string) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	content, err := remote.Image(tag)
	if err != nil {
		return err
	}
	return validate.Image(content)
}

// TestPublish checks the folders that getting-started.md and docs/guides/kubernetes.md apply.
func TestPublish(t *testing.T) {
	d := inTinyCopy(t)
	d.refusesToPublish(t)
	host := startRegistry(t, nil)
	if err := d.publish(t.Context(), host+"/some/path"); err != nil {
		t.Fatal(err)
	}
	for folder, operators := range map[string]int{"default": 9, "control-plane": 8, "all-namespaces": 8, "shared-volume": 1} {
		images := d.imagesOf(t, folder)
		if len(images) != operators {
			t.Errorf("%s has images %v instead of %d", folder, images, operators)
		}
		for _, image := range images {
			if err := pull(image); err != nil || !strings.HasPrefix(image, host+"/some/path/") {
				t.Errorf("%s: image %s: %v", folder, image, err)
			}
		}
	}
	for _, folder := range []string{"demo", "demo-compute"} { // their image is pushed by hand: docs/images.md
		if images := d.imagesOf(t, folder); !slices.Equal(images, []string{host + "/some/path/demo/openstack:trixie"}) {
			t.Errorf("%s has images %v", folder, images)
		}
	}
}

// imagesOf returns the images of a kustomization in the work folder, each once.
func (d *demo) imagesOf(t *testing.T, folder string) (images []string) {
	t.Helper()
	objects, err := source.Render(d.work(folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		images = append(images, imagesIn(object.Object)...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// refusesToPublish checks the messages about a registry, and that nothing is left to apply.
func (d *demo) refusesToPublish(t *testing.T) {
	t.Helper()
	refusing := startRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return false
		}
		http.Error(w, `{"errors": [{"code": "DENIED", "message": "no right to push"}]}`, http.StatusForbidden)
		return true
	})
	for address, wants := range map[string][]string{
		"":                       {"push needs IMAGE_REGISTRY=HOST/PATH"},
		"https://quay.example/a": {"IMAGE_REGISTRY is not a valid prefix of an image's name: it has no https://"},
		"127.0.0.1:1/some/path":  {"the registry of IMAGE_REGISTRY does not answer: set IMAGE_REGISTRY to a registry that", "connection refused"},
		refusing + "/some/path":  {"the registry refuses the push of " + refusing + "/some/path/", "-operator:", "log in first", "no right to push"},
	} {
		err := d.publish(t.Context(), address)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("IMAGE_REGISTRY=%s: %v lacks %q", address, err, want)
			}
		}
		if _, err := os.Stat(d.work("control-plane")); !os.IsNotExist(err) {
			t.Errorf("IMAGE_REGISTRY=%s: the folders of the installations were written, %v", address, err)
		}
	}
}
