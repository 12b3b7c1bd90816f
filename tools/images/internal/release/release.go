// Package release makes the images of a version: an index for each operator, the bundles
// and the catalogs that refer to the indexes by digest, and for each image a bill of
// materials and its provenance.
package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/packages"
)

// Options of a release.
type Options struct {
	// Root is the directory of the repository.
	Root string
	// Registry is the host and path of the images; config/packaging.yaml has the default.
	Registry string
	// Version without "v"; config/packaging.yaml has the default.
	Version string
	// Output is the folder of the release. A complete release replaces the folder with all its
	// files; after an error, the folder is as before. A folder that has files, and is no release,
	// is refused.
	Output string
	// Mirror is the host and path of a registry with copies of the operands, which are
	// the images of other projects. Without Mirror, their own registries are asked.
	Mirror string
	// Platforms of the images, default Platforms.
	Platforms []string
	// Push pushes the images to Registry.
	Push bool
	// SigningKey is a file with the key that signs what is pushed; "": nothing is signed.
	SigningKey string
	// Log receives a line for each image.
	Log io.Writer
	// Program builds the operators. The default is the Go toolchain.
	Program Program
}

// Names in the folder of a release.
const (
	bundlesFolder = packages.Bundles
	catalogFolder = packages.Catalog
	chartsFolder  = packages.Charts
	distFolder    = packages.Dist
	layoutFolder  = "oci"
	sbomFolder    = "sbom"
	originFolder  = "provenance"
	// programsFolder is removed when the images are complete.
	programsFolder = "bin"
)

// release is a release that is being made.
type release struct {
	Options
	folder        string   // of the files, beside Output until the release is complete
	architectures []string // of the platforms
	project       *project
	list          List
	layout        layout.Path
	published     []published
	signer        *signer // nil: nothing is signed
}

// published is an image of this release, in the layout.
type published struct {
	Image
	index     v1.ImageIndex
	referrers []v1.Image
}

// Write writes a release to its folder, and returns the list of its images.
func Write(ctx context.Context, options Options) (List, error) {
	r, err := prepare(ctx, options)
	if err != nil {
		return List{}, err
	}
	return r.write(ctx)
}

func (r *release) write(ctx context.Context) (List, error) {
	defer func() { _ = os.RemoveAll(r.folder) }() // the folder of a complete release has another name
	steps := []func(context.Context) error{
		r.createFolder, r.resolveOperands,
		r.operators, r.renderPackages, // the bundles refer to the operators' digests
		r.bundles, r.renderPackages, // the catalogs refer to the bundles' digests
		r.earlier, r.check,
		r.catalogs, r.writeSources,
	}
	if r.Push {
		steps = append(steps, r.push)
	}
	for _, step := range append(steps, r.replaceOutput) {
		if err := step(ctx); err != nil {
			return List{}, err
		}
	}
	return r.list, nil
}

func prepare(ctx context.Context, options Options) (*release, error) {
	r := &release{Options: options}
	var err error
	for _, folder := range []*string{&r.Root, &r.Output} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return nil, err
		}
	}
	if r.project, err = readProject(ctx, r.Root); err != nil {
		return nil, err
	}
	r.Registry = cmp.Or(strings.TrimSuffix(r.Registry, "/"), r.project.Registry)
	r.Version = cmp.Or(strings.TrimPrefix(r.Version, "v"), r.project.Version)
	r.Mirror = strings.TrimSuffix(r.Mirror, "/")
	r.project.Registry, r.project.Version = r.Registry, r.Version
	r.list.Version = r.Version
	if r.architectures, err = architecturesOf(r.Platforms); err != nil {
		return nil, err
	}
	if r.SigningKey != "" {
		if !r.Push {
			return nil, errors.New("a key signs only what is pushed: add --push")
		}
		if r.signer, err = readSigner(r.SigningKey); err != nil {
			return nil, err
		}
	}
	if r.Program == nil {
		r.Program = r.goProgram
	}
	return r, nil
}

// renderPackages writes the bundles and catalogs with the digests that are known so far.
func (r *release) renderPackages(context.Context) error {
	r.note("render bundles and catalogs")
	images := source.ImagesOf(r.project.Project)
	images.Digests = r.list.digests()
	return packages.Write(r.project.Project, images, r.folder)
}

// earlier adds the images of earlier versions, which the catalogs still offer.
func (r *release) earlier(context.Context) error {
	var failed []error
	err := eachReference(r.folder, []string{catalogFolder}, func(file, reference string) {
		if strings.HasSuffix(file, ".v"+r.Version+".yaml") || r.list.has(reference) {
			return
		}
		repository, digest, pinned := strings.Cut(reference, "@")
		if !pinned {
			failed = append(failed, fmt.Errorf("%s refers to %s by tag: replace the file with that of the version's release", file, reference))
			return
		}
		r.list.Images = append(r.list.Images, Image{Name: filepath.Base(repository), Kind: kindEarlier, Reference: repository, Digest: digest})
	})
	return errors.Join(append(failed, err)...)
}

func (r *release) check(context.Context) error { return checkReferences(r.folder, r.list) }

func (r *release) note(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Log, format+"\n", args...) // a lost line of progress is no error
}
