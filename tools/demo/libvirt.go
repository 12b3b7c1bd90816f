package main

import (
	"context"

	"asterism.dev/tools/internal/progress"
)

const (
	variantsArchive = "openstack-variants.tar"
	guestName       = "real"
	guestPicture    = "screen.png"
)

// loadVariants builds the variants of the OpenStack image, and loads them.
func (d *demo) loadVariants(ctx context.Context, line *progress.Line) error {
	archive := d.work("images", variantsArchive)
	build := command{name: "image-variants", args: []string{d.work("bin", "images"), "openstack", "--variants", "--release", d.release, "--output", archive}}
	if err := d.run(ctx, line, build); err != nil {
		return err
	}
	return d.run(ctx, line, d.clusterCommand("load", archive))
}

// bootGuest boots an instance on this machine, whose screen is a file at the end.
func (d *demo) bootGuest(ctx context.Context, line *progress.Line) error {
	env := append([]string{"RELEASE=" + d.release}, d.kube.env...)
	return d.run(ctx, line, command{name: "guest", env: env, args: []string{d.example("demo-libvirt", "up"), d.work("libvirt"), d.work(guestPicture)}})
}

// endGuests ends the instances of this machine, and libvirt, if the demo has started it.
func (d *demo) endGuests(ctx context.Context, line *progress.Line) error {
	return d.run(ctx, line, command{name: "guest-down", args: []string{d.example("demo-libvirt", "node"), "down", d.work("libvirt", "libvirt")}})
}
