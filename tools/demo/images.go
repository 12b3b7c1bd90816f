package main

import (
	"context"
)

const (
	openStackImage   = "asterism.dev/demo/openstack"
	openStackTag     = "bookworm"
	openStackArchive = "openstack.tar"
)

// buildOpenStack takes the image from the cache if it is there.
func (d *demo) buildOpenStack(ctx context.Context, line *line) error {
	return d.run(ctx, line, command{name: "image-openstack", args: []string{
		d.work("bin", "images"), "openstack", "--output", d.work("images", openStackArchive),
	}})
}
