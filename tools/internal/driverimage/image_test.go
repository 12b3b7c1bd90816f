package driverimage

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func write(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	driver, standIn := filepath.Join(folder, "driver"), filepath.Join(folder, "stand-in")
	for path, content := range map[string]string{driver: "the driver", standIn: "the stand-in"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output := filepath.Join(folder, "images.tar")
	if err := Write(t.Context(), "v1", driver, standIn, output); err != nil {
		t.Fatal(err)
	}
	return output
}

func image(t *testing.T, archive, imageName string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(imageName + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEachImageStartsItsProgram(t *testing.T) {
	archive := write(t)
	for imageName, program := range map[string]string{
		"asterism.dev/demo/aws-efs-csi-driver":        "/usr/bin/aws-efs-csi-driver",
		"asterism.dev/demo/csi-node-driver-registrar": "/usr/bin/csi-node-driver-registrar",
		"asterism.dev/demo/livenessprobe":             "/usr/bin/livenessprobe",
	} {
		config, err := image(t, archive, imageName).ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Config.Entrypoint; len(got) != 1 || got[0] != program {
			t.Errorf("%s starts %v", imageName, got)
		}
	}
}

// TestMountRunsInTheImage runs mount and umount with only the files of the image.
func TestMountRunsInTheImage(t *testing.T) {
	root := unpack(t, image(t, write(t), Driver))
	for _, program := range []string{"/usr/bin/mount", "/usr/bin/umount"} {
		command := exec.Command("unshare", "--user", "--map-root-user", "--root="+root, program, "--version")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program, err, output)
		}
	}
	for path, want := range map[string]string{
		"usr/bin/aws-efs-csi-driver": "the driver", "sbin/mount.efs": "the stand-in", "usr/bin/livenessprobe": "the stand-in",
	} {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s contains %q, %v", path, got, err)
		}
	}
	if _, err := os.ReadDir(filepath.Join(root, staticFiles)); err != nil {
		t.Error(err)
	}
}

func unpack(t *testing.T, from v1.Image) string {
	t.Helper()
	layers, err := from.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers %d, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	root := t.TempDir()
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err == nil {
			err = unpackEntry(root, header, reader)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackEntry(root string, header *tar.Header, content io.Reader) error {
	path := filepath.Join(root, header.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeLink:
		return os.Link(filepath.Join(root, header.Linkname), path)
	}
	body, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path, body, os.FileMode(header.Mode).Perm())
}
