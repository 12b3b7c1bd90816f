package main

import (
	"context"
)

const (
	openStackImage   = "asterism.dev/demo/openstack"
	openStackTag     = "bookworm"
	openStackArchive = "openstack.tar"
)

// openStack is the image as the cluster pulls it.
func (d *demo) openStack() string { return d.image(openStackImage) + ":" + openStackTag }

// buildOpenStack takes the image from the cache if it is there. Building takes
// root, so a registry that has it is not asked which build that is.
func (d *demo) buildOpenStack(ctx context.Context, line *line) error {
	if d.existing {
		if present, err := inRegistry(ctx, d.openStack()); present || err != nil {
			return err
		}
	}
	return d.run(ctx, line, command{name: "image-openstack", args: []string{
		d.work("bin", "images"), "openstack", "--output", d.work("images", openStackArchive),
	}})
}
