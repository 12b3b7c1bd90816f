package openstackimage

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

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
	base, err := archive.LayerOf(image, recipe.Image)
	if err != nil {
		return err
	}
	if err := b.step("add layers to "+recipe.Image, func() error { return b.add(ctx, recipe, base) }); err != nil {
		return err
	}
	layers := map[string]v1.Layer{}
	for _, addition := range recipe.Additions {
		if layers[addition.Name], err = archive.LayerFromFile(b.layer(addition.Name)); err != nil {
			return err
		}
	}
	return b.step("pack the variants of "+recipe.Image, func() error {
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
			images[recipe.Image+variant.Tag] = built
		}
		return archive.Write(b.output, images)
	})
}

// add unpacks the image, and builds the layers of the additions one after the other.
func (b *build) add(ctx context.Context, recipe recipe, base v1.Layer) error {
	content, err := base.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	settings := filepath.Join(b.dir, "apt.conf") // configure.sh removes mmdebstrap's own file
	const unpack = `cp "$MMDEBSTRAP_APT_CONFIG" "$2"; tar --extract --numeric-owner --preserve-permissions --directory "$1"`
	options := []string{"--variant=custom", hook("setup", unpack, settings)}
	for _, addition := range recipe.Additions {
		options = append(options, hook("customize", recipe.Add, slices.Concat([]string{
			b.layer(addition.Name), settings, strings.Join(addition.Packages, " "), b.excluded(), recipe.Configure, addition.Script,
		}, addition.Arguments)...))
	}
	return b.mmdebstrap(ctx, content, options...)
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
