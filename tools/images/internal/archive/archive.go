// Package archive writes container images as docker-archive files, which
// `ctr images import`, `docker load` and `podman load` read, without any
// container daemon.
package archive

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Write puts one layer and its configuration into a docker-archive at path,
// tagged with the image's name. The file appears under its name only when it
// is complete.
func Write(path, image string, config v1.ConfigFile, layer v1.Layer) error {
	tag, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image name %q: %w", image, err)
	}
	config.RootFS.Type = "layers"
	built, err := mutate.ConfigFile(empty.Image, &config)
	if err != nil {
		return fmt.Errorf("image %s: set configuration: %w", image, err)
	}
	built, err = mutate.Append(built, mutate.Addendum{Layer: layer, History: v1.History{Created: config.Created}})
	if err != nil {
		return fmt.Errorf("image %s: add layer: %w", image, err)
	}
	partial := path + ".partial"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	if err := tarball.WriteToFile(partial, tag, built); err != nil {
		return fmt.Errorf("image %s: write %s: %w", image, partial, err)
	}
	if err := os.Rename(partial, path); err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	return nil
}
