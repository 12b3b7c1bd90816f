// Package catalog makes the file-based catalog from the bundles and the hand-written upgrade
// graph.
package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/bundle"
)

// Template is the path of the hand-written upgrade graph, which all operators share.
const Template = "catalog/template.yaml"

// Folders of the catalogs: Release for OLM v0, and OLMv1, which has no dependencies.
const (
	Release = "release"
	OLMv1   = "olmv1"
)

// Packages returns one file with the package and its channel for each operator.
func Packages(project *source.Project, icon []byte) (output.Files, error) {
	template, err := os.ReadFile(project.Path(Template))
	if err != nil {
		return nil, err
	}
	files := output.Files{}
	for _, operator := range project.Operators {
		content := bytes.ReplaceAll(template, []byte("PACKAGE"), []byte(operator.Package()))
		config, err := declcfg.LoadReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Template, err)
		}
		if !releases(config, project.Channel, bundle.Name(project, operator)) {
			return nil, fmt.Errorf("%s needs one olm.package with the defaultChannel %s, and one olm.channel %s with the entry PACKAGE.v%s",
				Template, project.Channel, project.Channel, project.Version)
		}
		config.Packages[0].Icon = &declcfg.Icon{Data: icon, MediaType: "image/svg+xml"}
		config.Packages[0].Description = bundle.Description(operator)
		if err := leaveOutMissing(project, operator, &config.Channels[0]); err != nil {
			return nil, err
		}
		if files[filepath.Join(operator.Package(), "package.yaml")], err = encode(config); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// releases reports whether a package's default channel is the channel of the project, and has
// the version of the project.
func releases(config *declcfg.DeclarativeConfig, channel, version string) bool {
	return len(config.Packages) == 1 && config.Packages[0].DefaultChannel == channel &&
		len(config.Channels) == 1 && config.Channels[0].Name == channel &&
		slices.ContainsFunc(config.Channels[0].Entries, func(entry declcfg.ChannelEntry) bool { return entry.Name == version })
}

// leaveOutMissing removes the versions of which the committed catalog has no bundle, such as
// those before the operator's first one. The next version still replaces a removed version: OLM
// updates an operator whose own bundle is no longer in the catalog.
func leaveOutMissing(project *source.Project, operator *source.Operator, channel *declcfg.Channel) error {
	known := map[string]bool{bundle.Name(project, operator): true}
	for _, entry := range channel.Entries {
		switch _, err := os.Stat(project.Path("catalog", Release, operator.Package(), entry.Name+".yaml")); {
		case err == nil:
			known[entry.Name] = true
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	channel.Entries = slices.DeleteFunc(channel.Entries, func(entry declcfg.ChannelEntry) bool { return !known[entry.Name] })
	return nil
}

// Bundle renders the bundle in a directory, as `opm render` does: a reference to its image, and
// the metadata of the ClusterServiceVersion. The file has the name of the bundle.
func Bundle(project *source.Project, operator *source.Operator, images source.Images, directory string) (output.Files, error) {
	config, err := Imageless(directory)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", directory, err)
	}
	own := source.NamedImage{Name: operator.Package() + "-bundle", Reference: images.Bundle(operator)}
	config.Bundles[0].Image = own.Reference
	for _, image := range append(images.Of(operator), own) {
		config.Bundles[0].RelatedImages = append(config.Bundles[0].RelatedImages, declcfg.RelatedImage{Name: image.Name, Image: image.Reference})
	}
	if err := withMetadata(config); err != nil {
		return nil, err
	}
	content, err := encode(config)
	return output.Files{filepath.Join(operator.Package(), bundle.Name(project, operator)+".yaml"): content}, err
}

// Imageless renders the bundle in a directory with its manifests, so that no registry is needed.
func Imageless(directory string) (*declcfg.DeclarativeConfig, error) {
	input, err := registry.NewImageInput(image.SimpleReference(""), directory)
	if err != nil {
		return nil, err
	}
	objects, properties, err := registry.ObjectsAndPropertiesFromBundle(input.Bundle)
	if err != nil {
		return nil, err
	}
	csv, err := input.Bundle.ClusterServiceVersion()
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(csv)
	return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{{
		Schema: declcfg.SchemaBundle, Name: input.Bundle.Name, Package: input.Bundle.Package,
		Properties: properties, Objects: objects, CsvJSON: string(content),
	}}}, err
}

// withMetadata replaces the manifests with the metadata of the ClusterServiceVersion, which
// OpenShift's pipelines require since 4.17.
func withMetadata(config *declcfg.DeclarativeConfig) error {
	migrate, err := migrations.NewMigrations("bundle-object-to-csv-metadata")
	if err != nil {
		return err
	}
	return migrate.Migrate(config)
}

// WithoutDependencies returns the files of a catalog without the dependencies of bundles, which
// OLM v1 refuses.
func WithoutDependencies(catalog output.Files) (output.Files, error) {
	files := output.Files{}
	for path, content := range catalog {
		config, err := declcfg.LoadReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i := range config.Bundles {
			config.Bundles[i].Properties = slices.DeleteFunc(config.Bundles[i].Properties, func(p property.Property) bool {
				return p.Type == property.TypeGVKRequired || p.Type == property.TypePackageRequired || p.Type == property.TypeConstraint
			})
		}
		if files[path], err = encode(config); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}

func encode(config *declcfg.DeclarativeConfig) ([]byte, error) {
	var content bytes.Buffer
	if err := declcfg.WriteYAML(*config, &content); err != nil {
		return nil, err
	}
	documents, _ := bytes.CutPrefix(content.Bytes(), []byte("---\n")) // a document without a schema is refused
	return append([]byte(output.Header), documents...), nil
}
