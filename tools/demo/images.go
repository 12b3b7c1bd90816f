package main

import (
	"context"

	"asterism.dev/tools/internal/progress"
)

const (
	openStackImage   = "asterism.dev/demo/openstack"
	defaultRelease   = "bookworm" // the tag in the examples
	defaultImage     = openStackImage + ":" + defaultRelease
	openStackArchive = "openstack.tar"
)

// demoReleases are the releases of Debian that have Keystone, Placement and Glance.
var demoReleases = []string{defaultRelease, "trixie"}

// openStack returns the image's name for the cluster.
func (d *demo) openStack() string { return d.image(openStackImage) + ":" + d.release }

// buildOpenStack builds the image unless the cache or the registry has it. Building
// needs root, so an image in the registry is used even if it is of another build.
func (d *demo) buildOpenStack(ctx context.Context, line *progress.Line) error {
	if d.existing {
		if present, err := inRegistry(ctx, d.openStack()); present || err != nil {
			return err
		}
	}
	return d.run(ctx, line, command{name: "image-openstack", args: []string{
		d.work("bin", "images"), "openstack", "--release", d.release, "--output", d.work("images", openStackArchive),
	}})
}
