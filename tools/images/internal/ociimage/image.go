// Package ociimage makes the images of a release in the formats of OCI: an index with one
// image for each platform, and artifacts that refer to an image.
package ociimage

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"asterism.dev/tools/internal/archive"
)

// Variant is an image for one architecture, in Go's spelling.
type Variant struct {
	Architecture string
	Files        []archive.File
}

// Index returns an index with an image of one layer for each variant. The same variants,
// configuration, annotations and date give the same digest.
func Index(variants []Variant, config v1.Config, annotations map[string]string, created time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, variant := range variants {
		image, err := build(variant, config, created)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", variant.Architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: plainImage{image}, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1,
			Platform:  &v1.Platform{OS: "linux", Architecture: variant.Architecture},
		}})
	}
	return mutate.Annotations(index, annotations).(v1.ImageIndex), nil
}

// plainImage is an image without the type of an artifact. Otherwise, the library adds the type
// of the configuration to the descriptor in the index, and older programs, such as skopeo 1.9,
// drop this field and refuse to copy the index with its digest.
type plainImage struct{ v1.Image }

// ArtifactType is read by the library's function Descriptor.
func (plainImage) ArtifactType() (string, error) { return "", nil }

func build(variant Variant, config v1.Config, created time.Time) (v1.Image, error) {
	layer, err := newLayer(variant.Files, created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: variant.Architecture, Created: v1.Time{Time: created},
		Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: created}},
	})
}

// newLayer sorts the files, so that their order does not change the digest.
func newLayer(files []archive.File, created time.Time) (v1.Layer, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b archive.File) int { return strings.Compare(a.Path, b.Path) })
	content, err := archive.Tar(created, files...)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	return tarball.LayerFromOpener(open,
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression),
		tarball.WithCompressedCaching)
}
