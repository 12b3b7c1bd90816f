package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"asterism.dev/tools/internal/demoimage"
	"asterism.dev/tools/internal/progress"
	"asterism.dev/tools/internal/registry"
)

const (
	openStackImage   = "asterism.dev/demo/openstack"
	defaultRelease   = "trixie" // the tag in the examples
	defaultImage     = openStackImage + ":" + defaultRelease
	openStackArchive = "openstack.tar"
)

// demoReleases are the releases of Debian that have Keystone, Placement and Glance.
var demoReleases = []string{defaultRelease, "bookworm"}

// openStack returns the image's name for the cluster.
func (d *demo) openStack() string { return d.image(openStackImage) + ":" + d.release }

// buildOpenStack builds the image unless the cache or the registry has it. Building
// needs root, so an image in the registry is used even if it is of another build, as
// long as it was built with the same packages.
func (d *demo) buildOpenStack(ctx context.Context, line *progress.Line) error {
	if d.existing {
		if present, err := inRegistry(ctx, d.openStack()); err != nil {
			return err
		} else if present {
			return d.checkOpenStack(ctx)
		}
	}
	return d.run(ctx, line, command{name: "image-openstack", args: []string{
		d.work("bin", "images"), "openstack", "--release", d.release, "--output", d.work("images", openStackArchive),
	}})
}

// checkOpenStack refuses an image in the registry that lacks packages. The demo does not
// replace it: nodes that have pulled it would keep it, and others may use it.
func (d *demo) checkOpenStack(ctx context.Context) error {
	image := d.openStack()
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	labels, err := registry.Labels(ctx, tag)
	if err != nil {
		return fmt.Errorf("reading image %s: %w", image, err)
	}
	if missing := demoimage.Missing(labels, d.release); len(missing) > 0 {
		return fmt.Errorf("image %s is of another release of Asterism, and lacks %s: set IMAGE_REGISTRY to another path, such as %s, "+
			"to which the demo then pushes a new image (building it needs Debian and root)",
			image, strings.Join(missing, ", "), strings.TrimSuffix(d.registry, "/")+"/new")
	}
	return nil
}
