package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"asterism.dev/tools/internal/demoimage"
	"asterism.dev/tools/internal/progress"
)

func TestImagesArePushedUnderTheRegistrysName(t *testing.T) {
	d := &demo{root: t.TempDir(), release: defaultRelease, existing: true, registry: startRegistry(t, nil) + "/some/path/", tags: map[string]string{"nova": "0123456789ab"}}
	if err := d.makeWorkFolder(); err != nil {
		t.Fatal(err)
	}
	writeArchive(t, d.operatorArchive("nova", "0123456789ab"), "asterism.dev/nova-operator:0123456789ab")
	writeArchive(t, d.work("images", openStackArchive), "asterism.dev/demo/openstack:trixie")
	line := progress.New(io.Discard, 1).Begin(1, "push")
	for range 2 { // the second push finds all images
		if err := d.push(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []string{d.registry + "nova-operator:0123456789ab", d.registry + "demo/openstack:trixie"} {
		if present, err := inRegistry(t.Context(), image); err != nil || !present {
			t.Errorf("%s: present %v, %v", image, present, err)
		}
	}
	if present, err := inRegistry(t.Context(), d.registry+"nova-operator:other"); err != nil || present {
		t.Errorf("an image that was not pushed: present %v, %v", present, err)
	}
}

// TestAnOldOpenStackImageIsRefused: with an image that has no Glance, the demo would wait for
// Glance until its timeout.
func TestAnOldOpenStackImageIsRefused(t *testing.T) {
	host := startRegistry(t, nil)
	current := strings.Join(demoimage.Packages(defaultRelease), " ")
	for name, test := range map[string]struct{ packages, want string }{
		"current":         {current, ""},
		"without Glance":  {strings.Replace(current, "glance-api", "", 1), "trixie is of another release of Asterism, and lacks glance-api: "},
		"without a label": {"", "trixie is of another release of Asterism, and lacks ca-certificates, curl, glance-api, "},
	} {
		d := &demo{release: defaultRelease, existing: true, registry: host + "/" + strings.ReplaceAll(strings.ToLower(name), " ", "-")}
		pushOpenStack(t, d, test.packages)
		err := d.buildOpenStack(t.Context(), progress.New(io.Discard, 1).Begin(1, "build"))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), d.image(openStackImage)+":"+test.want)) {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "set IMAGE_REGISTRY to another path") {
			t.Errorf("%s: no remedy in %v", name, err)
		}
	}
}

// startRegistry returns the host of a registry that lives as long as the test. Requests that
// refuse answers do not reach it.
func startRegistry(t *testing.T, refuse func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse == nil || !refuse(w, r) {
			images.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// pushOpenStack pushes an image that says that it has these packages.
func pushOpenStack(t *testing.T, d *demo, packages string) {
	t.Helper()
	content, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	if packages != "" {
		content, err = mutate.Config(content, v1.Config{Labels: map[string]string{demoimage.PackagesLabel: packages}})
		if err != nil {
			t.Fatal(err)
		}
	}
	target, err := name.NewTag(d.openStack())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, content); err != nil {
		t.Fatal(err)
	}
}

func writeArchive(t *testing.T, path, image string) {
	t.Helper()
	content, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Clean(path), tag, content); err != nil {
		t.Fatal(err)
	}
}
