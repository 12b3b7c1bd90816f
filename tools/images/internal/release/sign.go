package release

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/images/internal/ociimage"
)

// signer signs manifests with a key, as cosign does, without a transparency log. cosign, Podman and
// the nodes of OpenShift verify such a signature, which is an image beside the signed one, with the
// tag sha256-HEX.sig. The format is in specs/SIGNATURE_SPEC.md of github.com/sigstore/cosign.
type signer struct{ key *ecdsa.PrivateKey }

// readSigner reads an ECDSA key of the curve P-256 in PEM, which is not encrypted.
func readSigner(path string) (*signer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: make a key with \"openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256\"", path, err)
	}
	return &signer{key}, nil
}

func parseKey(content []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(content)
	switch {
	case block == nil:
		return nil, errors.New("has no key in PEM")
	case strings.HasPrefix(block.Type, "ENCRYPTED "):
		return nil, errors.New("the key is encrypted")
	}
	found, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("has no private key in PKCS #8")
	}
	key, ok := found.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is not for ECDSA with the curve P-256")
	}
	return key, nil
}

// statement is what a signature signs.
type statement struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// sign returns the signature of a manifest in a repository. It is the same each time (RFC 6979), so
// that a repeated release moves no tag.
func (s *signer) sign(repository, digest string) (v1.Image, error) {
	var signed statement
	signed.Critical.Identity.Reference, signed.Critical.Image.Digest = repository, digest
	signed.Critical.Type = "cosign container image signature"
	payload, err := json.Marshal(signed)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(payload)
	signature, err := s.key.Sign(nil, hash[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return ociimage.Signature(payload, base64.StdEncoding.EncodeToString(signature))
}

// pushSignatures pushes the signatures of an image's index, of its platforms and of its referrers. A
// node verifies only the manifest of its platform.
func (r *release) pushSignatures(ctx context.Context, image published) error {
	if r.signer == nil {
		return nil
	}
	manifest, err := image.index.IndexManifest()
	if err != nil {
		return err
	}
	digests := []string{image.Digest}
	for _, variant := range manifest.Manifests {
		digests = append(digests, variant.Digest.String())
	}
	for _, referrer := range image.referrers {
		digest, err := referrer.Digest()
		if err != nil {
			return err
		}
		digests = append(digests, digest.String())
	}
	for _, digest := range digests {
		signature, err := r.signer.sign(image.Repository(), digest)
		if err != nil {
			return err
		}
		own, err := signature.Digest()
		if err != nil {
			return err
		}
		tag, err := name.NewTag(image.Repository() + ":" + strings.Replace(digest, ":", "-", 1) + ".sig")
		if err != nil {
			return err
		}
		if err := pushTag(ctx, tag, own.String(), signature, "it is of another key: delete the tag"); err != nil {
			return err
		}
	}
	return nil
}
