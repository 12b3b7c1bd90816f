package release

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"asterism.dev/tools/internal/registry"
)

// push pushes the images of this release with their referrers. The catalogs are last, so
// that a catalog in the registry refers only to images that the registry has.
func (r *release) push(ctx context.Context) error {
	for _, image := range r.published {
		r.note("push %s", image.Reference)
		if err := pushImage(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// pushImage refuses to move the tag of a version: users who have read the tag would get
// another program than others.
func pushImage(ctx context.Context, image published) error {
	tag, err := name.NewTag(image.Reference)
	if err != nil {
		return err
	}
	found, err := registry.Find(ctx, tag)
	if err != nil {
		return fmt.Errorf("push %s: %w", image.Reference, err)
	}
	if found != "" && found != image.Digest {
		return fmt.Errorf("push %s: the registry has the tag with another digest, %s: raise the version, or delete the tag", image.Reference, found)
	}
	if err := registry.Push(ctx, tag, image.index); err != nil {
		return err
	}
	for _, referrer := range image.referrers {
		digest, err := referrer.Digest()
		if err != nil {
			return err
		}
		if err := registry.Push(ctx, tag.Digest(digest.String()), referrer); err != nil {
			return err
		}
	}
	return nil
}
