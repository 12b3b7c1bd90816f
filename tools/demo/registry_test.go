package main

import (
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"asterism.dev/tools/internal/progress"
)

func TestImagesArePushedUnderTheRegistrysName(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	d := &demo{root: t.TempDir(), release: defaultRelease, existing: true, registry: strings.TrimPrefix(server.URL, "http://") + "/some/path/", tags: map[string]string{"nova": "0123456789ab"}}
	if err := d.makeWorkFolder(); err != nil {
		t.Fatal(err)
	}
	writeArchive(t, d.operatorArchive("nova", "0123456789ab"), "asterism.dev/nova-operator:0123456789ab")
	writeArchive(t, d.work("images", openStackArchive), "asterism.dev/demo/openstack:bookworm")
	line := progress.New(io.Discard, 1).Begin(1, "push")
	for range 2 { // the second push finds all images
		if err := d.push(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []string{d.registry + "nova-operator:0123456789ab", d.registry + "demo/openstack:bookworm"} {
		if present, err := inRegistry(t.Context(), image); err != nil || !present {
			t.Errorf("%s: present %v, %v", image, present, err)
		}
	}
	if present, err := inRegistry(t.Context(), d.registry+"nova-operator:other"); err != nil || present {
		t.Errorf("an image that was not pushed: present %v, %v", present, err)
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
