package archive

import (
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer is an uncompressed tar. The library's own layers are always compressed, which
// costs more time than it saves for an image that stays on one machine.
type layer struct {
	digest v1.Hash
	size   int64
	open   func() (io.ReadCloser, error)
}

// LayerFromFile creates a layer from a tar file, which is read again when the image is
// written.
func LayerFromFile(path string) (v1.Layer, error) {
	return newLayer(func() (io.ReadCloser, error) { return os.Open(path) })
}

// LayerOf returns the only layer of an image in a docker-archive.
func LayerOf(path, image string) (v1.Layer, error) {
	tag, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return nil, err
	}
	found, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return nil, fmt.Errorf("image %s in %s: %w", image, path, err)
	}
	layers, err := found.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("image %s in %s has %d layers, want 1", image, path, len(layers))
	}
	return newLayer(layers[0].Uncompressed)
}

func newLayer(open func() (io.ReadCloser, error)) (v1.Layer, error) {
	content, err := open()
	if err != nil {
		return nil, fmt.Errorf("open layer: %w", err)
	}
	defer func() { _ = content.Close() }()
	digest, size, err := v1.SHA256(content)
	if err != nil {
		return nil, fmt.Errorf("digest layer: %w", err)
	}
	return &layer{digest: digest, size: size, open: open}, nil
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.open() }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }
