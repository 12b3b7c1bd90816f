package archive

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Stored is an image in a docker-archive. The digest of its configuration identifies the
// whole content, as the configuration lists every layer's digest.
type Stored struct {
	Tags   []string
	Digest string
}

// Read lists the images of a docker-archive. It skips the layers, so it is quick for large
// archives too.
func Read(path string) ([]Stored, error) {
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, fmt.Errorf("not a docker archive: %w", err)
	}
	var images []Stored
	for _, entry := range manifest {
		if len(entry.RepoTags) == 0 {
			return nil, errors.New("an image in the archive has no tag, so no pod could refer to it")
		}
		tag, err := name.NewTag(entry.RepoTags[0])
		if err != nil {
			return nil, err
		}
		image, err := tarball.Image(open, &tag)
		if err != nil {
			return nil, err
		}
		digest, err := image.ConfigName()
		if err != nil {
			return nil, err
		}
		images = append(images, Stored{entry.RepoTags, digest.String()})
	}
	return images, nil
}
