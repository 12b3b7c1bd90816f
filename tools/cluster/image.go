package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/internal/archive"
	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// load imports the docker archives that the cluster's containerd lacks.
func (c *cluster) load(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return fmt.Errorf("%w: load needs the path of at least one docker archive", errUsage)
	}
	if machine, err := readMachine(); err != nil || machine == nil || machine.Dir != c.dir {
		return errors.Join(fmt.Errorf("no full cluster runs in %s: start one with up", c.dir), err)
	}
	for _, path := range paths {
		images, err := archive.Read(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var tags []string
		for _, image := range images {
			tags = append(tags, image.Tags...)
		}
		name := strings.Join(tags, ", ")
		present, err := c.loaded(ctx, images)
		if err != nil {
			return err
		}
		if present {
			c.progress.Say("%s is already loaded", name)
			continue
		}
		err = c.progress.During("loading "+name, func(*progress.Line) error {
			_, err := ctr(ctx, "images", "import", path)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loaded reports whether containerd has every image under all of its tags.
func (c *cluster) loaded(ctx context.Context, images []archive.Stored) (bool, error) {
	list, err := ctr(ctx, "images", "list")
	if err != nil {
		return false, err
	}
	// REF TYPE DIGEST SIZE…, under a line of headings.
	targets := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) > 2 {
			targets[fields[0]] = fields[2]
		}
	}
	for _, image := range images {
		for _, tag := range image.Tags {
			target := ""
			for reference := range targets {
				// Short names are completed with the default registry.
				if reference == tag || strings.HasSuffix(reference, "/"+tag) {
					target = targets[reference]
				}
			}
			if target == "" || configDigest(ctx, target) != image.Digest {
				return false, nil
			}
		}
	}
	return true, nil
}

// configDigest reads the configuration's digest from an image's manifest; "" without such a manifest.
func configDigest(ctx context.Context, target string) string {
	content, err := ctr(ctx, "content", "get", target)
	var manifest struct{ Config struct{ Digest string } }
	if err != nil || json.Unmarshal(content, &manifest) != nil {
		return ""
	}
	return manifest.Config.Digest
}

// ctr runs containerd's client in the kubelet's namespace, and returns its output.
func ctr(ctx context.Context, args ...string) ([]byte, error) {
	args = slices.Concat([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, args)
	output, err := exec.CommandContext(ctx, commandPath("ctr"), args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w\n%s", err, process.LastLines(string(failed.Stderr), 5))
	}
	if err != nil {
		return nil, fmt.Errorf("ctr %s: %w", strings.Join(args, " "), err)
	}
	return output, nil
}

// writePauseImage writes a docker archive with one static binary.
func writePauseImage(path, tag, binary string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	layer, err := archive.Layer(archive.File{Path: "pause", Mode: 0o755, Content: program})
	if err != nil {
		return err
	}
	return archive.Write(path, map[string]archive.Image{tag: {Layers: []v1.Layer{layer}, Config: v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, Created: v1.Time{Time: archive.Epoch},
		Config: v1.Config{Entrypoint: []string{"/pause"}, User: "65534:65534"},
	}}})
}
