package openstackimage

import (
	"context"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"asterism.dev/tools/internal/archive"
)

// addition is a layer on the image and on the additions before it.
type addition struct {
	Name     string
	Packages []string
	// Script runs after the packages are installed and configured.
	Script    string
	Arguments []string
}

// variant is the image with further layers, and without some of its files.
type variant struct {
	Tag     string   // appended to the tag of Image
	Layers  []string // names of additions
	Without []string
	Config  v1.ConfigFile
}

// variants builds the variants on the image in an archive.
func (b *build) variants(ctx context.Context, recipe recipe, image string) error {
	base, err := archive.LayerOf(image, Image)
	if err != nil {
		return err
	}
	if err := b.step("unpack "+Image, func() error { return b.unpack(ctx, recipe.base, base) }); err != nil {
		return err
	}
	layers := map[string]v1.Layer{}
	for _, addition := range recipe.Additions {
		if err := b.step("add "+addition.Name, func() error { return b.add(ctx, recipe, addition) }); err != nil {
			return err
		}
		if layers[addition.Name], err = archive.LayerFromFile(b.layer(addition.Name)); err != nil {
			return err
		}
	}
	return b.step("pack the variants of "+Image, func() error {
		images := map[string]archive.Image{}
		for _, variant := range recipe.Variants {
			built := archive.Image{Config: created(variant.Config), Layers: []v1.Layer{base}}
			for _, name := range variant.Layers {
				built.Layers = append(built.Layers, layers[name])
			}
			removal, err := without(variant.Without)
			if err != nil {
				return err
			}
			built.Layers = append(built.Layers, removal)
			images[Image+variant.Tag] = built
		}
		return archive.Write(b.output, images)
	})
}

// unpack unpacks the image, and makes apt usable in it again.
func (b *build) unpack(ctx context.Context, recipe base, layer v1.Layer) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	unpack := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", b.root())
	unpack.Stdin = content
	if err := b.logged(unpack); err != nil {
		return err
	}
	return b.prepareApt(ctx, recipe)
}

// add installs the packages of an addition. Its layer consists of the files that changed: a
// file that changes gets a later ctime.
func (b *build) add(ctx context.Context, recipe recipe, addition addition) error {
	stamp := filepath.Join(b.dir, addition.Name+".stamp")
	if err := b.logged(exec.CommandContext(ctx, "touch", stamp)); err != nil {
		return err
	}
	if err := b.resolveNames(ctx); err != nil {
		return err
	}
	const install = `apt-get -q -y --no-install-recommends install "$@"`
	for _, step := range []struct {
		script    string
		arguments []string
	}{{install, addition.Packages}, {recipe.Configure, nil}, {addition.Script, addition.Arguments}} {
		if err := b.inRoot(ctx, step.script, step.arguments...); err != nil {
			return err
		}
	}
	const changed = `cd "$1"; file=$2 stamp=$3; shift 3
find . -xdev -cnewer "$stamp" "$@" -print0 | tar --create --file "$file" --numeric-owner --no-recursion --null --files-from -`
	var others []string
	for _, path := range excluded(".%s") {
		others = append(others, "!", "-path", path)
	}
	return b.logged(exec.CommandContext(ctx, "sh", append([]string{"-euc", changed, "sh", b.root(), b.layer(addition.Name), stamp}, others...)...))
}

// without is a layer that removes files of the layers below: it has an empty file with a
// prefix instead (OCI image specification: whiteouts).
func without(paths []string) (v1.Layer, error) {
	var files []archive.File
	for _, path := range paths {
		files = append(files, archive.File{Path: filepath.Join(filepath.Dir(path), ".wh."+filepath.Base(path))[1:], Mode: 0o644})
	}
	return archive.Layer(files...)
}
