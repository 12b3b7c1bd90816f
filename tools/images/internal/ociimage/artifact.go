package ociimage

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// emptyConfig is the configuration of an artifact, which OCI prescribes.
const (
	emptyConfig     = "{}"
	emptyConfigType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// artifact is a manifest with one blob. The library has no function that sets the type of
// an artifact.
type artifact struct {
	manifest []byte
	blob     v1.Layer
}

// Artifact returns an artifact of one file that refers to its subject. Its type is a media
// type, for example application/spdx+json.
func Artifact(subject v1.Descriptor, artifactType, title string, content []byte) (v1.Image, error) {
	blob := static.NewLayer(content, types.MediaType(artifactType))
	digest, err := blob.Digest()
	if err != nil {
		return nil, err
	}
	config := static.NewLayer([]byte(emptyConfig), emptyConfigType)
	configDigest, err := config.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  artifactType,
		Config:        v1.Descriptor{MediaType: emptyConfigType, Digest: configDigest, Size: int64(len(emptyConfig))},
		Layers: []v1.Descriptor{{
			MediaType: types.MediaType(artifactType), Digest: digest, Size: int64(len(content)),
			Annotations: map[string]string{"org.opencontainers.image.title": title},
		}},
		Subject: &subject,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest, blob})
}

func (a artifact) RawConfigFile() ([]byte, error)      { return []byte(emptyConfig), nil }
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if known, err := a.blob.Digest(); err != nil || known != digest {
		return nil, fmt.Errorf("the artifact has no blob %s", digest)
	}
	return a.blob, nil
}
