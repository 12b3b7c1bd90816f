package bundle

import (
	"slices"
	"strings"

	"asterism.dev/tools/packaging/internal/source"
)

// Images resolves the images of a version.
type Images struct {
	// Registry is the host and path of the operators' images.
	Registry string
	// Tag of the operators' images.
	Tag string
	// Digests has the digest ("sha256:…") for each reference by tag. A reference without
	// a digest is used with its tag.
	Digests map[string]string
}

// ImagesOf returns the images of the project's version.
func ImagesOf(project *source.Project) Images {
	return Images{Registry: project.Registry, Tag: "v" + project.Version}
}

// NamedImage is an image with the name that a bundle's relatedImages use.
type NamedImage struct {
	Name      string `json:"name"`
	Reference string `json:"image"`
}

// Operator is the reference of an operator's own image.
func (i Images) Operator(operator *source.Operator) string {
	return i.pinned(i.Registry + "/" + operator.ImageName() + ":" + i.Tag)
}

// Bundle is the reference of an operator's bundle image.
func (i Images) Bundle(operator *source.Operator) string {
	return i.pinned(i.Registry + "/" + operator.Package() + "-bundle:" + i.Tag)
}

// Operand is the reference of an image that an operator starts.
func (i Images) Operand(image source.Image) string { return i.pinned(image.Image) }

// Of lists the operator's own image and the images that it starts.
func (i Images) Of(operator *source.Operator) []NamedImage {
	all := []NamedImage{{operator.ImageName(), i.Operator(operator)}}
	for _, image := range operator.Images {
		name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(image.Variable, "RELATED_IMAGE_")), "_", "-")
		all = append(all, NamedImage{name, i.Operand(image)})
	}
	return all
}

// pinnedAll reports whether every image of an operator is referenced by digest.
func (i Images) pinnedAll(operator *source.Operator) bool {
	return !slices.ContainsFunc(i.Of(operator), func(image NamedImage) bool { return !strings.Contains(image.Reference, "@") })
}

func (i Images) pinned(reference string) string {
	digest, known := i.Digests[reference]
	if !known {
		return reference
	}
	return reference[:strings.LastIndex(reference, ":")] + "@" + digest
}
