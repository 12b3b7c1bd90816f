// Package registry pushes images, with the credentials of ~/.docker/config.json.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// Digest returns the digest of an image, as sha256:HEX.
func Digest(ctx context.Context, image name.Reference) (string, error) {
	found, err := remote.Head(image, options(ctx)...)
	if err != nil {
		return "", err
	}
	return found.Digest.String(), nil
}

// Find is Digest that returns an empty digest if the registry has no such image. Registries
// report this with several codes, and so any refusal counts; a push reports other errors.
func Find(ctx context.Context, image name.Reference) (string, error) {
	digest, err := Digest(ctx, image)
	if refused := (*transport.Error)(nil); errors.As(err, &refused) {
		return "", nil
	}
	return digest, err
}

// Labels returns the labels of an image.
func Labels(ctx context.Context, image name.Reference) (map[string]string, error) {
	content, err := remote.Image(image, options(ctx)...)
	if err != nil {
		return nil, err
	}
	config, err := content.ConfigFile()
	if err != nil {
		return nil, err
	}
	return config.Config.Labels, nil
}

// Push pushes an image or an index.
func Push(ctx context.Context, image name.Reference, content remote.Taggable) error {
	err := remote.Push(image, content, options(ctx)...)
	refused := (*transport.Error)(nil)
	switch {
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry refuses the push of %s: log in first (credentials are read from ~/.docker/config.json): %w", image, err)
	case err != nil:
		return fmt.Errorf("push %s: %w", image, err)
	}
	return nil
}
