package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"asterism.dev/tools/internal/progress"
	"asterism.dev/tools/internal/registry"
)

// publish pushes the operators' images, for an installation without the demo.
func (d *demo) publish(ctx context.Context, address string) error {
	if address == "" {
		return errors.New("push needs IMAGE_REGISTRY=HOST/PATH: a registry that the cluster's nodes pull from, and that you may push to")
	}
	d.registry = address
	if _, err := inRegistry(ctx, d.openStack()); err != nil { // before the builds, which take minutes
		return err
	}
	if err := d.makeWorkFolder(); err != nil {
		return err
	}
	steps := []step{
		{stepOperators, nil, d.buildOperators},
		{stepPush, []string{stepOperators}, d.pushOperators},
	}
	err := runSteps(ctx, progress.New(os.Stdout, len(steps)), steps)
	if err == nil {
		err = d.writeInstallations()
	}
	if err != nil {
		return err
	}
	fmt.Println("\nNext, apply one of:")
	for _, install := range installations {
		fmt.Printf("  kubectl apply --server-side -k %-32s # %s\n", d.short(d.work(install.overlay)), install.description)
	}
	fmt.Println("\nThen, for the namespace NAMESPACE of each ControlPlane:\n" +
		"  kubectl apply --namespace NAMESPACE -k config/namespace   # hands the namespace over to the operators")
	return nil
}

// push copies the images that the cluster's registry lacks to it.
func (d *demo) push(ctx context.Context, line *progress.Line) error {
	if err := d.pushOperators(ctx, line); err != nil {
		return err
	}
	return pushMissing(ctx, line, d.openStack(), d.work("images", openStackArchive), openStackImage+":"+d.release)
}

// pushOperators skips tags that the registry has, as a tag is the digest of the binary.
func (d *demo) pushOperators(ctx context.Context, line *progress.Line) error {
	for operator, tag := range d.tags {
		stored := operatorImage(operator) + ":" + tag
		if err := pushMissing(ctx, line, d.image(operatorImage(operator))+":"+tag, d.operatorArchive(operator, tag), stored); err != nil {
			return err
		}
	}
	return nil
}

// pushMissing pushes an image of a docker archive, which has the tag stored, unless the
// registry has it.
func pushMissing(ctx context.Context, line *progress.Line, image, archive, stored string) error {
	line.Note(image)
	if present, err := inRegistry(ctx, image); present || err != nil {
		return err
	}
	target, err := name.NewTag(image)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(stored)
	if err != nil {
		return err
	}
	content, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	return registry.Push(ctx, target, content)
}

// inRegistry reports whether the registry has an image of that name and tag.
func inRegistry(ctx context.Context, image string) (bool, error) {
	target, err := name.NewTag(image)
	if strings.Contains(image, "://") { // which NewTag takes for a host with a port
		err = errors.New("it has no https://, as in quay.example/asterism")
	}
	if err != nil {
		return false, fmt.Errorf("IMAGE_REGISTRY is not a valid prefix of an image's name: %w", err)
	}
	digest, err := registry.Find(ctx, target)
	if err != nil {
		return false, fmt.Errorf("the registry of IMAGE_REGISTRY does not answer: set IMAGE_REGISTRY to a registry that this machine and the cluster's nodes reach: %w", err)
	}
	return digest != "", nil
}
