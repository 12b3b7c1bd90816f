package source

import (
	"slices"
	"strings"
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
func ImagesOf(project *Project) Images {
	return Images{Registry: project.Registry, Tag: "v" + project.Version}
}

// NamedImage is an image with the name that a bundle's relatedImages use.
type NamedImage struct {
	Name      string `json:"name"`
	Reference string `json:"image"`
}

// Operator is the reference of an operator's own image.
func (i Images) Operator(operator *Operator) string {
	return i.pinned(i.Registry + "/" + operator.Package() + ":" + i.Tag)
}

// Bundle is the reference of an operator's bundle image.
func (i Images) Bundle(operator *Operator) string {
	return i.pinned(i.Registry + "/" + operator.Package() + "-bundle:" + i.Tag)
}

// Operand is the reference of an image that an operator starts.
func (i Images) Operand(image Image) string { return i.pinned(image.Reference) }

// Of lists the operator's own image and the images that it starts.
func (i Images) Of(operator *Operator) []NamedImage {
	all := []NamedImage{{operator.Package(), i.Operator(operator)}}
	for _, image := range operator.Images {
		all = append(all, NamedImage{image.Name(), i.Operand(image)})
	}
	return all
}

// AllPinned reports whether every image of an operator is referenced by digest.
func (i Images) AllPinned(operator *Operator) bool {
	return !slices.ContainsFunc(i.Of(operator), func(image NamedImage) bool { return !strings.Contains(image.Reference, "@") })
}

func (i Images) pinned(reference string) string {
	digest, known := i.Digests[reference]
	if !known {
		return reference
	}
	return reference[:strings.LastIndex(reference, ":")] + "@" + digest
}

// Image is an image that an operator starts.
type Image struct {
	// Variable is the environment variable with the image, for example RELATED_IMAGE_NOVA.
	Variable string `json:"variable"`
	// Reference is the reference of the image by tag.
	Reference string `json:"image"`
	// Digest is the pinned digest, as sha256:HEX: a release refuses a tag with another one. Without
	// it, a release takes the digest that the registry has.
	Digest string `json:"digest,omitempty"`
}

// Name is the name of the image in lists, for example liveness-probe for
// RELATED_IMAGE_LIVENESS_PROBE.
func (i Image) Name() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(i.Variable, "RELATED_IMAGE_")), "_", "-")
}
