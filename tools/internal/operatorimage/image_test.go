package operatorimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const image = "asterism.dev/example-operator:v1.2.3"

// build compiles a small program into dir.
func build(t *testing.T, dir string) string {
	t.Helper()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(`ran`) }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	command := exec.Command("go", "build", "-trimpath", "-o", binary, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return binary
}

func write(t *testing.T, binary string) (string, v1.Image) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(image, binary, file); err != nil {
		t.Fatal(err)
	}
	built, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file, built
}

func TestSameBinaryGivesTheSameImage(t *testing.T) {
	binary := build(t, t.TempDir())
	first, _ := write(t, binary)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(binary, later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(binary, 0o700); err != nil {
		t.Fatal(err)
	}
	second, _ := write(t, binary)
	one, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("the same binary gave two different images")
	}
}

func TestImageRunsTheBinaryAsNonRoot(t *testing.T) {
	_, built := write(t, build(t, t.TempDir()))
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture == "" || config.RootFS.Type != "layers" {
		t.Errorf("platform %s/%s, root file system of %q", config.OS, config.Architecture, config.RootFS.Type)
	}
	if config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/manager" {
		t.Errorf("user %q, entrypoint %q", config.Config.User, config.Config.Entrypoint)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("version label %q", got)
	}
}

func TestImageContainsOnlyTheBinary(t *testing.T) {
	binary := build(t, t.TempDir())
	original, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	_, built := write(t, binary)
	layers, err := built.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers %d, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	files := tar.NewReader(content)
	header, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(files)
	if err != nil || header.Name != "manager" || header.Mode != 0o755 || !bytes.Equal(packed, original) {
		t.Errorf("packed %s, mode %o, %d of %d bytes, %v", header.Name, header.Mode, len(packed), len(original), err)
	}
	if _, err := files.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the image contains other files than the binary: %v", err)
	}
}

func TestDynamicBinaryIsRefused(t *testing.T) {
	err := Write(image, "/bin/sh", filepath.Join(t.TempDir(), "image.tar"))
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v", err)
	}
}

func TestScriptIsRefused(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(image, script, filepath.Join(t.TempDir(), "image.tar")); err == nil {
		t.Error("a script was packed as an operator")
	}
}
