// Package archive writes and reads container images as docker-archive files, which
// `ctr images import`, `docker load` and `podman load` read, without any
// container daemon.
package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is the configuration of an image, and its layers.
type Image struct {
	Config v1.ConfigFile
	Layers []v1.Layer
}

// Epoch is the value of every time stamp, so that the same files give the same image.
var Epoch = time.Unix(0, 0).UTC()

// Write writes images, tagged with their names, as a docker-archive to path. The file gets its
// final name only when it is complete. A layer of several images is written once.
func Write(path string, images map[string]Image) error {
	tagged := map[name.Tag]v1.Image{}
	for image, content := range images {
		tag, err := name.NewTag(image, name.StrictValidation)
		if err != nil {
			return fmt.Errorf("image name %q: %w", image, err)
		}
		if tagged[tag], err = content.build(); err != nil {
			return fmt.Errorf("image %s: %w", image, err)
		}
	}
	partial := path + ".partial"
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := tarball.MultiWriteToFile(partial, tagged); err != nil {
		return fmt.Errorf("write %s: %w", partial, err)
	}
	return os.Rename(partial, path)
}

func (i Image) build() (v1.Image, error) {
	config := i.Config
	config.RootFS.Type = "layers"
	built, err := mutate.ConfigFile(empty.Image, &config)
	if err != nil {
		return nil, fmt.Errorf("set configuration: %w", err)
	}
	for _, layer := range i.Layers {
		built, err = mutate.Append(built, mutate.Addendum{Layer: layer, History: v1.History{Created: config.Created}})
		if err != nil {
			return nil, fmt.Errorf("add layer: %w", err)
		}
	}
	return built, nil
}
