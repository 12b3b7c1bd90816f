package release

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"asterism.dev/tools/internal/registry"
	"asterism.dev/tools/internal/source"
)

// resolveOperands asks registries for the digests of the operands, and compares them with the
// pinned ones. It comes first, because the build takes minutes and a registry may be out of reach.
func (r *release) resolveOperands(ctx context.Context) error {
	for _, operator := range r.project.Operators {
		for _, operand := range operator.Images {
			digest, err := r.pinnedDigest(ctx, operand)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", packagingOf(operator), operand.Reference, err)
			}
			image := Image{Name: operand.Name(), Kind: kindOperand, Reference: operand.Reference, Digest: digest}
			if !slices.ContainsFunc(r.list.Images, func(known Image) bool { return known.Reference == operand.Reference }) {
				r.list.Images = append(r.list.Images, image)
			}
		}
	}
	return nil
}

// packagingOf is the file with the operands of an operator.
func packagingOf(operator *source.Operator) string {
	return "operators/" + operator.Name + "/packaging.yaml"
}

// pinnedDigest is operandDigest that refuses another digest than the pinned one. An operand
// without a pin is trusted.
func (r *release) pinnedDigest(ctx context.Context, operand source.Image) (string, error) {
	reference, err := r.operandReference(operand)
	if err != nil {
		return "", err
	}
	digest, err := r.operandDigest(ctx, operand)
	if err == nil && operand.Digest != "" && digest != operand.Digest {
		err = fmt.Errorf("the tag %s of %s has the digest %s, but the pinned one is %s. Somebody may have replaced the image: find out why before you run it on nodes, privileged. "+
			"If it is a copy, copy it again with all platforms and the same digest (skopeo copy --all --preserve-digests). "+
			"If you have changed the tag, or trust the new image, pin its digest: \"make operand-digests\" prints the line",
			reference.TagStr(), reference.Repository, digest, operand.Digest)
	}
	return digest, err
}

// operandDigest reads the digest of an operand's tag.
func (r *release) operandDigest(ctx context.Context, operand source.Image) (string, error) {
	reference, err := r.operandReference(operand)
	if err != nil {
		return "", err
	}
	digest, err := registry.Digest(ctx, reference)
	if err != nil {
		_, path, _ := strings.Cut(operand.Reference, "/")
		return "", fmt.Errorf("registry %s gives no digest: if this machine cannot reach the registry, copy the image to another registry as HOST/PATH/%s, and type \"make release OPERAND_MIRROR=HOST/PATH …\" (images release --mirror): %w",
			reference.RegistryStr(), path, err)
	}
	return digest, nil
}

// operandReference is the operand's copy at the mirror, if there is a mirror: it keeps digests.
func (r *release) operandReference(operand source.Image) (name.Tag, error) {
	original, err := name.NewTag(operand.Reference, name.StrictValidation)
	if err != nil || r.Mirror == "" {
		return original, err
	}
	copied, err := name.NewTag(r.Mirror + "/" + original.RepositoryStr() + ":" + original.TagStr())
	if err != nil {
		return name.Tag{}, fmt.Errorf("OPERAND_MIRROR (--mirror): %w", err)
	}
	return copied, nil
}

// WriteOperands writes the operands with the digests that their registries, or the mirror, have
// now, as the lines of a packaging.yaml. A comment shows a pinned digest that differs.
func WriteOperands(ctx context.Context, options Options, to io.Writer) error {
	r, err := prepare(ctx, options)
	if err != nil {
		return err
	}
	for _, operator := range r.project.Operators {
		if len(operator.Images) == 0 {
			continue
		}
		_, _ = fmt.Fprintf(to, "# %s\nimages:\n", packagingOf(operator))
		for _, operand := range operator.Images {
			digest, err := r.operandDigest(ctx, operand)
			if err != nil {
				return fmt.Errorf("%s: %w", operand.Reference, err)
			}
			former := ""
			if operand.Digest != "" && operand.Digest != digest {
				former = " # the pinned digest is " + operand.Digest
			}
			_, _ = fmt.Fprintf(to, "- {variable: %s, image: %q, digest: %q}%s\n", operand.Variable, operand.Reference, digest, former)
		}
	}
	return nil
}
