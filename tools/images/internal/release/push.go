package release

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"asterism.dev/tools/internal/registry"
)

// push pushes the images of this release with their referrers and signatures. The catalogs are last, so
// that a catalog in the registry refers only to images that the registry has.
func (r *release) push(ctx context.Context) error {
	for _, image := range r.published {
		r.note("push %s", image.Reference)
		if err := pushImage(ctx, image); err != nil {
			return err
		}
		if err := r.pushSignatures(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// pushImage pushes an image with its referrers.
func pushImage(ctx context.Context, image published) error {
	tag, err := name.NewTag(image.Reference)
	if err != nil {
		return err
	}
	if err := pushTag(ctx, tag, image.Digest, image.index, "raise the version, or delete the tag"); err != nil {
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

// pushTag refuses to move a tag: users who have read the tag would get another program than others.
func pushTag(ctx context.Context, tag name.Tag, digest string, content remote.Taggable, remedy string) error {
	found, err := registry.Find(ctx, tag)
	if err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	if found != "" && found != digest {
		return fmt.Errorf("push %s: the registry has the tag with another digest, %s: %s", tag, found, remedy)
	}
	return registry.Push(ctx, tag, content)
}
