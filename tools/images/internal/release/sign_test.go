package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// writeKey writes a private key to a file.
func writeKey(t *testing.T, path, kind string, key any) {
	t.Helper()
	content, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})), path)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// checkSignatures verifies the signatures of a release: of each index, platform and referrer.
func checkSignatures(t *testing.T, list List, key *ecdsa.PublicKey) {
	t.Helper()
	for _, image := range list.Images {
		if image.Kind == kindOperand {
			continue
		}
		reference, err := name.NewDigest(image.Pinned())
		if err != nil {
			t.Fatal(err)
		}
		signed := []string{image.Digest}
		index, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		referrers, err := remote.Referrers(reference)
		if err != nil {
			t.Fatal(err)
		}
		signed = append(append(signed, digestsIn(t, index)...), digestsIn(t, referrers)...)
		if len(signed) != 5 {
			t.Errorf("%s has %d manifests, want an index, two platforms and two referrers", image.Name, len(signed))
		}
		for _, digest := range signed {
			checkSignature(t, image.Repository(), digest, key)
		}
	}
}

// checkSignature verifies a signature as a node does.
func checkSignature(t *testing.T, repository, digest string, key *ecdsa.PublicKey) {
	t.Helper()
	tag, err := name.NewTag(repository + ":" + strings.Replace(digest, ":", "-", 1) + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag)
	if err != nil {
		t.Errorf("%s: %v", tag, err)
		return
	}
	manifest, err := image.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%s: %v, %v", tag, manifest, err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	payload, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"critical":{"identity":{"docker-reference":"` + repository + `"},"image":{"docker-manifest-digest":"` + digest +
		`"},"type":"cosign container image signature"},"optional":null}`
	if string(payload) != want {
		t.Errorf("%s signs %s, want %s", tag, payload, want)
	}
	signature, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	hash := sha256.Sum256(payload)
	if err != nil || !ecdsa.VerifyASN1(key, hash[:], signature) {
		t.Errorf("%s: the signature is wrong, %v", tag, err)
	}
}

// checkOtherKey signs an image of a release with another key.
func checkOtherKey(t *testing.T, list List) {
	t.Helper()
	image := published{Image: list.Images[slices.IndexFunc(list.Images, func(image Image) bool { return image.Kind == kindOperator })]}
	reference, err := name.NewDigest(image.Pinned())
	if err != nil {
		t.Fatal(err)
	}
	if image.index, err = remote.Index(reference); err != nil {
		t.Fatal(err)
	}
	other := &release{signer: &signer{newKey(t)}}
	if err := other.pushSignatures(t.Context(), image); err == nil || !strings.Contains(err.Error(), "it is of another key: delete the tag") {
		t.Errorf("the error is %v", err)
	}
}

func TestUnusableKeysAreRefused(t *testing.T) {
	folder := t.TempDir()
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "no key", folder, "text")
	writeKey(t, filepath.Join(folder, "encrypted"), "ENCRYPTED SIGSTORE PRIVATE KEY", newKey(t))
	writeKey(t, filepath.Join(folder, "curve"), "PRIVATE KEY", other)
	writeKey(t, filepath.Join(folder, "rsa"), "PRIVATE KEY", weak)
	writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})), folder, "public")
	for file, want := range map[string]string{
		"missing": "no such file", "text": "has no key in PEM: make a key with", "encrypted": "the key is encrypted: make a key with",
		"curve": "is not for ECDSA with the curve P-256", "rsa": "is not for ECDSA", "public": "has no private key in PKCS #8",
	} {
		_, err := prepare(t.Context(), Options{Root: root, Output: folder, Push: true, SigningKey: filepath.Join(folder, file)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	if _, err := prepare(t.Context(), Options{Root: root, Output: folder, SigningKey: filepath.Join(folder, "text")}); err == nil || !strings.Contains(err.Error(), "add --push") {
		t.Errorf("without a push: %v", err)
	}
}

// digestsIn returns the digests in an index.
func digestsIn(t *testing.T, index indexed) (digests []string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range manifest.Manifests {
		digests = append(digests, part.Digest.String())
	}
	return digests
}

type indexed interface {
	IndexManifest() (*v1.IndexManifest, error)
}
