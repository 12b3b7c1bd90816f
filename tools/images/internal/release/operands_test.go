package release

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"
)

// TestOperandOfAnotherDigestIsRefused makes releases with a mirror that has other images than
// those whose digests are pinned.
func TestOperandOfAnotherDigestIsRefused(t *testing.T) {
	mirror := startRegistry(t)
	standIns := mirrorOperands(t, mirror)
	r, err := prepare(t.Context(), Options{
		Root: root, Output: filepath.Join(t.TempDir(), "release"), Mirror: mirror, Log: io.Discard,
		Program: func(context.Context, string, string) (string, error) {
			return "", errors.New("the release accepts the operands")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pin(r, standIns)
	if err := r.resolveOperands(t.Context()); err != nil || len(r.list.Images) != len(standIns) {
		t.Fatalf("the pinned digests: %v, %v", err, r.list.Images)
	}
	pin(r, nil)
	if err := r.resolveOperands(t.Context()); err != nil {
		t.Errorf("no pinned digests: %v", err)
	}

	for reference, digest := range standIns {
		pin(r, standIns)
		pin(r, map[string]string{reference: digestOne})
		_, err := r.write(t.Context())
		if err == nil {
			t.Fatalf("a release accepts another image as %s", reference)
		}
		_, path, _ := strings.Cut(reference, "/")
		repository, tag, _ := strings.Cut(path, ":")
		for _, part := range []string{
			"/packaging.yaml: " + reference + ": ", "the tag " + tag + " of " + mirror + "/" + repository + " has the digest " + digest,
			"the pinned one is " + digestOne, `"make operand-digests"`, "--preserve-digests",
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the message lacks %q: %v", part, err)
			}
		}
	}
}

func TestPinnedDigestsAreDigests(t *testing.T) {
	project, err := readProject(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, operator := range project.Operators {
		for _, operand := range operator.Images {
			if _, err := v1.NewHash(operand.Digest); err != nil && operand.Digest != "" {
				t.Errorf("%s: %s: %v", packagingOf(operator), operand.Reference, err)
			}
		}
	}
}

// TestWrittenOperandsPin reads the printed lines as those of a packaging.yaml.
func TestWrittenOperandsPin(t *testing.T) {
	mirror := startRegistry(t)
	standIns := mirrorOperands(t, mirror)
	var printed bytes.Buffer
	if err := WriteOperands(t.Context(), Options{Root: root, Mirror: mirror}, &printed); err != nil {
		t.Fatal(err)
	}
	var packaging struct {
		Images []struct{ Variable, Image, Digest string }
	}
	if err := yaml.Unmarshal(printed.Bytes(), &packaging); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	if len(packaging.Images) != len(standIns) {
		t.Errorf("%d of %d images:\n%s", len(packaging.Images), len(standIns), printed.String())
	}
	for _, image := range packaging.Images {
		if !strings.HasPrefix(image.Variable, "RELATED_IMAGE_") || standIns[image.Image] != image.Digest {
			t.Errorf("got %v, want the digest %s", image, standIns[image.Image])
		}
	}
	project, err := readProject(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, operand := range project.Operator("shared-volume").Images {
		if former := " # the pinned digest is " + operand.Digest + "\n"; operand.Digest != "" && !strings.Contains(printed.String(), former) {
			t.Errorf("the text lacks %q:\n%s", former, printed.String())
		}
	}
}
