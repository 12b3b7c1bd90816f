package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// image is one entry of a docker archive. The digest of its configuration identifies the
// whole content, as the configuration lists every layer's digest.
type image struct {
	tags   []string
	digest string
}

// archiveManifest is an image's entry in manifest.json of a docker archive.
type archiveManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// load imports the docker archives that the cluster's containerd lacks.
func (c *cluster) load(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return fmt.Errorf("%w: load needs the path of at least one docker archive", errUsage)
	}
	if machine, err := readMachine(); err != nil || machine == nil || machine.Dir != c.dir {
		return errors.Join(fmt.Errorf("no full cluster runs in %s: start one with up", c.dir), err)
	}
	for _, path := range paths {
		images, err := readArchive(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var tags []string
		for _, image := range images {
			tags = append(tags, image.tags...)
		}
		name := strings.Join(tags, ", ")
		present, err := c.loaded(ctx, images)
		if err != nil {
			return err
		}
		if present {
			c.progress.say("%s is already loaded", name)
			continue
		}
		err = c.progress.during("loading "+name, func() error { return ctr(ctx, io.Discard, "images", "import", path) })
		if err != nil {
			return err
		}
	}
	return nil
}

// readArchive skips the layers, so it is quick for large archives too.
func readArchive(path string) ([]image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := readEntry(file, "manifest.json")
	if err != nil {
		return nil, err
	}
	var manifests []archiveManifest
	if err := json.Unmarshal(content, &manifests); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var images []image
	for _, manifest := range manifests {
		if len(manifest.RepoTags) == 0 {
			return nil, fmt.Errorf("an image in the archive has no tag, so no pod could refer to it")
		}
		config, err := readEntry(file, manifest.Config)
		if err != nil {
			return nil, err
		}
		images = append(images, image{manifest.RepoTags, fmt.Sprintf("sha256:%x", sha256.Sum256(config))})
	}
	return images, nil
}

func readEntry(file *os.File, name string) ([]byte, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("not a docker archive: it contains no %s", name)
		}
		if err != nil {
			return nil, fmt.Errorf("not a tar archive: %w", err)
		}
		if header.Name == name {
			return io.ReadAll(reader)
		}
	}
}

// loaded reports whether containerd has every image under all of its tags.
func (c *cluster) loaded(ctx context.Context, images []image) (bool, error) {
	var list bytes.Buffer
	if err := ctr(ctx, &list, "images", "list"); err != nil {
		return false, err
	}
	// REF TYPE DIGEST SIZE…, under a line of headings.
	targets := map[string]string{}
	for line := range strings.Lines(list.String()) {
		if fields := strings.Fields(line); len(fields) > 2 {
			targets[fields[0]] = fields[2]
		}
	}
	for _, image := range images {
		for _, tag := range image.tags {
			target := ""
			for reference := range targets {
				// Short names are completed with the default registry.
				if reference == tag || strings.HasSuffix(reference, "/"+tag) {
					target = targets[reference]
				}
			}
			if target == "" || configDigest(ctx, target) != image.digest {
				return false, nil
			}
		}
	}
	return true, nil
}

// configDigest reads the configuration's digest from an image's manifest; "" without such a manifest.
func configDigest(ctx context.Context, target string) string {
	var content bytes.Buffer
	if err := ctr(ctx, &content, "content", "get", target); err != nil {
		return ""
	}
	var manifest struct{ Config struct{ Digest string } }
	if err := json.Unmarshal(content.Bytes(), &manifest); err != nil {
		return ""
	}
	return manifest.Config.Digest
}

// ctr runs containerd's client in the kubelet's namespace.
func ctr(ctx context.Context, out io.Writer, args ...string) error {
	args = slices.Concat([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, args)
	var problem bytes.Buffer
	command := exec.CommandContext(ctx, commandPath("ctr"), args...)
	command.Stdout, command.Stderr = out, &problem
	if err := command.Run(); err != nil {
		return fmt.Errorf("ctr %s: %w\n%s", strings.Join(args, " "), err, lastLines(problem.String(), 5))
	}
	return nil
}

// writePauseImage writes a docker archive with one static binary.
func writePauseImage(path, tag, binary string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	layer, err := tarball(map[string][]byte{"pause": program})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/pause"}, "User": "65534:65534"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]archiveManifest{{Config: "config.json", RepoTags: []string{tag}, Layers: []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	archive, err := tarball(map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": layer})
	if err != nil {
		return err
	}
	return writeFile(filepath.Clean(path), archive, 0o644)
}

// tarball returns the same bytes for the same files, so that equal images have equal digests.
func tarball(files map[string][]byte) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := writer.Close() // writes the archive's end
	return content.Bytes(), err
}
