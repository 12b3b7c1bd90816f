package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push pushes the images of this release with their referrers. The catalogs are last, so
// that a catalog in the registry refers only to images that the registry has.
func (r *release) push(ctx context.Context) error {
	for _, image := range r.published {
		r.note("push %s", image.Reference)
		if err := pushImage(ctx, image); err != nil {
			refused := &transport.Error{}
			if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
				return fmt.Errorf("the registry refuses the push of %s: log in first (credentials are read from ~/.docker/config.json): %w", image.Reference, err)
			}
			return fmt.Errorf("push %s: %w", image.Reference, err)
		}
	}
	return nil
}

func pushImage(ctx context.Context, image published) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	tag, err := name.NewTag(image.Reference)
	if err != nil {
		return err
	}
	if err := refuseOther(tag, image.Digest, options); err != nil {
		return err
	}
	if err := remote.WriteIndex(tag, image.index, options...); err != nil {
		return err
	}
	for _, referrer := range image.referrers {
		if err := pushReferrer(tag.Context(), referrer, options); err != nil {
			return err
		}
	}
	return nil
}

func pushReferrer(repository name.Repository, referrer v1.Image, options []remote.Option) error {
	digest, err := referrer.Digest()
	if err != nil {
		return err
	}
	return remote.Write(repository.Digest(digest.String()), referrer, options...)
}

// refuseOther refuses to move the tag of a version: users who have read the tag would get
// another program than others.
func refuseOther(tag name.Tag, digest string, options []remote.Option) error {
	found, err := remote.Head(tag, options...)
	refused := &transport.Error{}
	switch {
	case errors.As(err, &refused):
		return nil // registries report a missing image with several codes; the push reports other errors
	case err != nil:
		return err
	case found.Digest.String() != digest:
		return fmt.Errorf("the registry has the tag with another digest, %s: raise the version, or delete the tag", found.Digest)
	}
	return nil
}
