package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		err = c.progress.During("loading "+name, func(*progress.Line) error { return ctr(ctx, io.Discard, "images", "import", path) })
		if err != nil {
			return err
		}
	}
	return nil
}

// loaded reports whether containerd has every image under all of its tags.
func (c *cluster) loaded(ctx context.Context, images []archive.Stored) (bool, error) {
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
		return fmt.Errorf("ctr %s: %w\n%s", strings.Join(args, " "), err, process.LastLines(problem.String(), 5))
	}
	return nil
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
