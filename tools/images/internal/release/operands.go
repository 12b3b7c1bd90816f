package release

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"

	"asterism.dev/tools/internal/registry"
)

// resolveOperands asks registries for the digests of the operands. It comes first, because
// the build takes minutes and a registry may be out of reach.
func (r *release) resolveOperands(ctx context.Context) error {
	for _, operator := range r.project.Operators {
		for _, operand := range operator.Images {
			if slices.ContainsFunc(r.list.Images, func(known Image) bool { return known.Reference == operand.Reference }) {
				continue
			}
			digest, err := r.operandDigest(ctx, operand.Reference)
			if err != nil {
				return fmt.Errorf("operators/%s/packaging.yaml: %s: %w", operator.Name, operand.Reference, err)
			}
			r.list.Images = append(r.list.Images, Image{Name: operand.Name(), Kind: kindOperand, Reference: operand.Reference, Digest: digest})
		}
	}
	return nil
}

// operandDigest reads the digest at the mirror if there is one: a mirror keeps digests.
func (r *release) operandDigest(ctx context.Context, image string) (string, error) {
	original, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return "", err
	}
	reference := original
	if r.Mirror != "" {
		if reference, err = name.NewTag(r.Mirror + "/" + original.RepositoryStr() + ":" + original.TagStr()); err != nil {
			return "", fmt.Errorf("OPERAND_MIRROR (--mirror): %w", err)
		}
	}
	digest, err := registry.Digest(ctx, reference)
	if err != nil {
		return "", fmt.Errorf("registry %s gives no digest: if this machine cannot reach the registry, copy the image to another registry as HOST/PATH/%s:%s, and type \"make release OPERAND_MIRROR=HOST/PATH …\" (images release --mirror): %w",
			reference.RegistryStr(), original.RepositoryStr(), original.TagStr(), err)
	}
	return digest, nil
}
