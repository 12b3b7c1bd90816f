package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"asterism.dev/tools/internal/progress"
)

// publish pushes the operators' images, for an installation without the demo.
func (d *demo) publish(ctx context.Context, registry string) error {
	if registry == "" {
		return errors.New("push needs IMAGE_REGISTRY=HOST/PATH: a registry that the cluster's nodes pull from, and that you may push to")
	}
	d.registry = registry
	if err := d.makeWorkFolder(); err != nil {
		return err
	}
	steps := []step{
		{stepTools, nil, func(ctx context.Context, line *progress.Line) error { return d.buildTools(ctx, line, "images") }},
		{stepOperators, []string{stepTools}, d.buildOperators},
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
	line.Note(d.openStack())
	if present, err := inRegistry(ctx, d.openStack()); present || err != nil {
		return err
	}
	return pushArchive(ctx, d.work("images", openStackArchive), openStackImage+":"+openStackTag, d.openStack())
}

// pushOperators skips tags that the registry has, as a tag is the digest of the binary.
func (d *demo) pushOperators(ctx context.Context, line *progress.Line) error {
	for operator, tag := range d.tags {
		image := d.image(operatorImage(operator)) + ":" + tag
		line.Note(image)
		present, err := inRegistry(ctx, image)
		if !present && err == nil {
			err = pushArchive(ctx, d.operatorArchive(operator, tag), operatorImage(operator)+":"+tag, image)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inRegistry reports whether the registry has an image of that name and tag.
func inRegistry(ctx context.Context, image string) (bool, error) {
	target, err := name.NewTag(image)
	if err != nil {
		return false, fmt.Errorf("IMAGE_REGISTRY is not a valid prefix of an image's name: %w", err)
	}
	_, err = remote.Head(target, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	refused := &transport.Error{}
	if errors.As(err, &refused) {
		return false, nil // registries report a missing image with several codes; pushing reports other errors
	}
	return err == nil, err
}

// pushArchive pushes the image of a docker archive that has the tag stored.
func pushArchive(ctx context.Context, archive, stored, image string) error {
	target, err := name.NewTag(image)
	if err != nil {
		return fmt.Errorf("IMAGE_REGISTRY is not a valid prefix of an image's name: %w", err)
	}
	tag, err := name.NewTag(stored)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	content, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	if err := remote.Write(target, content, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		refused := &transport.Error{}
		if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
			return fmt.Errorf("%s refuses the push of %s: log in first (credentials are read from ~/.docker/config.json): %w", target.RegistryStr(), image, err)
		}
		return fmt.Errorf("push %s: %w", image, err)
	}
	return nil
}
