package release

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"asterism.dev/tools/images/internal/ociimage"
	"asterism.dev/tools/images/internal/provenance"
	"asterism.dev/tools/images/internal/sbom"
	"asterism.dev/tools/internal/gobuild"
)

// referrers writes the bill of materials and the provenance of an image to files, and
// returns them as artifacts that refer to the image.
func (r *release) referrers(image content, entry Image, index v1.ImageIndex) ([]v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	digests := []string{entry.Digest}
	for _, variant := range manifest.Manifests {
		digests = append(digests, variant.Digest.String())
	}
	document, err := r.billOfMaterials(image, entry, digests[1:])
	if err != nil {
		return nil, err
	}
	statement, err := r.provenance(image, entry, digests)
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(index)
	if err != nil {
		return nil, err
	}
	bill, err := r.referrer(*subject, filepath.Join(sbomFolder, entry.Name+".spdx.json"), sbom.MediaType, document)
	if err != nil {
		return nil, err
	}
	origin, err := r.referrer(*subject, filepath.Join(originFolder, entry.Name+".intoto.json"), provenance.MediaType, statement)
	return []v1.Image{bill, origin}, err
}

// referrer writes a document to a file, and adds an artifact with the document to the layout.
func (r *release) referrer(subject v1.Descriptor, path, mediaType string, document []byte) (v1.Image, error) {
	if err := os.WriteFile(filepath.Join(r.folder, path), document, 0o644); err != nil { //nolint:gosec // these files are public
		return nil, err
	}
	artifact, err := ociimage.Artifact(subject, mediaType, filepath.Base(path), document)
	if err != nil {
		return nil, err
	}
	return artifact, r.layout.AppendImage(artifact)
}

func (r *release) billOfMaterials(image content, entry Image, digests []string) ([]byte, error) {
	described := sbom.Image{
		Name: entry.Name, Repository: entry.Repository(), Version: r.Version, Digest: entry.Digest,
		Supplier: r.project.Provider, License: license, Namespace: r.project.Repository + "/spdx", Created: r.project.Created,
	}
	for i, variant := range image.variants {
		part := sbom.Variant{Variant: variant, Digest: digests[i]}
		if image.programs != nil {
			part.Program = image.programs[i]
		}
		described.Variants = append(described.Variants, part)
	}
	return sbom.Document(described)
}

func (r *release) provenance(image content, entry Image, digests []string) ([]byte, error) {
	platforms, flags := []any{}, []any{}
	for _, architecture := range r.architectures {
		platforms = append(platforms, "linux/"+architecture)
	}
	for _, flag := range (gobuild.Program{}).Flags() {
		flags = append(flags, flag)
	}
	return provenance.Statement(provenance.Build{
		Repository: entry.Repository(), Digests: digests,
		Project: r.project.Repository, Revision: r.project.Revision,
		External: map[string]any{"name": entry.Name, "registry": r.Registry, "version": r.Version, "platforms": platforms},
		Internal: map[string]any{"go": runtime.Version(), "flags": flags, "created": r.project.Created.UTC().Format(time.RFC3339)},
		Programs: image.programs,
	})
}
