package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// push copies the images to the registry that the cluster pulls from, but for
// what it has: an operator's tag names its content.
func (d *demo) push(ctx context.Context, line *line) error {
	for operator, tag := range d.tags {
		image := d.image(operatorImage(operator)) + ":" + tag
		line.note(image)
		if err := pushArchive(ctx, d.operatorArchive(operator, tag), image); err != nil {
			return err
		}
	}
	image := d.image(openStackImage) + ":" + openStackTag
	line.note(image)
	return pushArchive(ctx, d.work("images", openStackArchive), image)
}

// pushArchive pushes the one image of a docker archive, unless the registry has it.
func pushArchive(ctx context.Context, archive, image string) error {
	target, err := name.NewTag(image)
	if err != nil {
		return fmt.Errorf("IMAGE_REGISTRY does not make a valid name of an image: %w", err)
	}
	content, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	wanted, err := content.Digest()
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	present, err := remote.Head(target, options...)
	if err == nil && present.Digest == wanted {
		return nil
	}
	if err := remote.Write(target, content, options...); err != nil {
		refused := &transport.Error{}
		if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
			return fmt.Errorf("%s refuses to take %s: log in first (its credentials are read from ~/.docker/config.json): %w", target.RegistryStr(), image, err)
		}
		return fmt.Errorf("push %s: %w", image, err)
	}
	return nil
}
