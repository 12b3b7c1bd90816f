package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestArchivesAreReproducible writes the archives of a small program twice, and unpacks them as
// krew does.
func TestArchivesAreReproducible(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{first, second} {
		build := func(_ context.Context, p Platform) (string, error) {
			path := filepath.Join(t.TempDir(), "program")
			return path, os.WriteFile(path, []byte("for "+p.OS+" on "+p.Arch), 0o600)
		}
		if err := Write(t.Context(), Options{Root: "../../../..", Version: "v1.2.3", Output: folder, Build: build}); err != nil {
			t.Fatal(err)
		}
	}
	var m manifest
	if err := yaml.UnmarshalStrict(read(t, first, Manifest), &m); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, first, Manifest), read(t, second, Manifest)) {
		t.Error("a second run has written another manifest")
	}
	if m.Metadata["name"] != "asterism" || m.Spec.Version != "v1.2.3" || len(m.Spec.ShortDescription) > 50 {
		t.Errorf("manifest %+v", m)
	}
	if len(m.Spec.Platforms) != 4 {
		t.Fatalf("%d platforms, want 4", len(m.Spec.Platforms))
	}
	for _, d := range m.Spec.Platforms {
		address, name := filepath.Split(d.URI)
		if !strings.HasSuffix(address, "/releases/download/v1.2.3/") {
			t.Errorf("address %s", address)
		}
		content := read(t, first, name)
		if !bytes.Equal(content, read(t, second, name)) {
			t.Errorf("a second run has written another %s", name)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != d.SHA256 {
			t.Errorf("%s has the sum %s, and the manifest %s", name, sum, d.SHA256)
		}
		labels := d.Selector["matchLabels"]
		if got, want := unpack(t, content), "kubectl-asterism -rwxr-xr-x for "+labels["os"]+" on "+labels["arch"]; !strings.HasPrefix(got, want+"\nLICENSE -rw-r--r-- ") || d.Bin != "kubectl-asterism" {
			t.Errorf("%s has\n%.200s\nwant %s", name, got, want)
		}
	}
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func unpack(t *testing.T, content []byte) string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return text.String()
		} else if err != nil {
			t.Fatal(err)
		}
		file, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s %s %s\n", header.Name, header.FileInfo().Mode(), file)
	}
}
