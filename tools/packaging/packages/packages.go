// Package packages writes the packages of the operators: OLM bundles, catalogs, Helm charts,
// and manifests for kubectl.
package packages

import (
	_ "embed"
	"fmt"
	"path/filepath"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/bundle"
	"asterism.dev/tools/packaging/internal/catalog"
	"asterism.dev/tools/packaging/internal/chart"
	"asterism.dev/tools/packaging/internal/install"
	"asterism.dev/tools/packaging/internal/reference"
)

//go:embed icon.svg
var icon []byte

// Folders of a release that Write writes.
const (
	Bundles = "bundles"
	Catalog = "catalog"
	Charts  = "charts"
	Dist    = "dist"
)

// Generate writes the packages that people read or apply from the repository, of the
// project's version. Write makes the others.
func Generate(root string) error {
	project, err := source.Read(root)
	if err != nil {
		return err
	}
	images := source.ImagesOf(project)
	bundles := func(operator *source.Operator) string {
		return filepath.Join(root, "operators", operator.Name, "bundle")
	}
	if err := writeBundles(project, images, bundles); err != nil {
		return err
	}
	files, err := catalogFiles(project, images, bundles)
	if err != nil {
		return err
	}
	if err := files.Write(filepath.Join(root, Catalog, catalog.Release)); err != nil { // beside the bundles of earlier versions
		return err
	}
	page := output.Files{"api.md": reference.Page(project)}
	if err := page.Write(filepath.Join(root, "docs")); err != nil {
		return err
	}
	return writeCharts(project, images, filepath.Join(root, Charts))
}

// Write writes the packages of a release to a folder. The catalogs also have the committed
// bundles of earlier versions.
func Write(project *source.Project, images source.Images, folder string) error {
	bundles := func(operator *source.Operator) string {
		return filepath.Join(folder, Bundles, operator.Package())
	}
	if err := writeBundles(project, images, bundles); err != nil {
		return err
	}
	if err := writeCatalogs(project, images, bundles, filepath.Join(folder, Catalog)); err != nil {
		return err
	}
	if err := WriteManifests(project, images, filepath.Join(folder, Dist)); err != nil {
		return err
	}
	return writeCharts(project, images, filepath.Join(folder, Charts))
}

func writeBundles(project *source.Project, images source.Images, folder func(*source.Operator) string) error {
	for _, operator := range project.Operators {
		files, err := bundle.Files(project, operator, images, icon)
		if err != nil {
			return fmt.Errorf("bundle of %s: %w", operator.Name, err)
		}
		if err := files.Replace(folder(operator)); err != nil {
			return err
		}
	}
	return nil
}

// writeCatalogs writes both catalogs, with the committed bundles of earlier versions.
func writeCatalogs(project *source.Project, images source.Images, bundles func(*source.Operator) string, folder string) error {
	files, err := output.Read(project.Path(Catalog, catalog.Release))
	if err != nil {
		return err
	}
	current, err := catalogFiles(project, images, bundles)
	if err != nil {
		return err
	}
	files.Include("", current)
	if err := files.Replace(filepath.Join(folder, catalog.Release)); err != nil {
		return err
	}
	if files, err = catalog.WithoutDependencies(files); err != nil {
		return err
	}
	return files.Replace(filepath.Join(folder, catalog.OLMv1))
}

// catalogFiles are the packages and their bundles of this version.
func catalogFiles(project *source.Project, images source.Images, bundles func(*source.Operator) string) (output.Files, error) {
	files, err := catalog.Packages(project, icon)
	if err != nil {
		return nil, err
	}
	for _, operator := range project.Operators {
		rendered, err := catalog.Bundle(project, operator, images, bundles(operator))
		if err != nil {
			return nil, err
		}
		files.Include("", rendered)
	}
	return files, nil
}

// WriteManifests writes the manifests for kubectl to a folder, and removes its other files.
func WriteManifests(project *source.Project, images source.Images, folder string) error {
	files, err := install.Files(project, images)
	if err != nil {
		return err
	}
	return files.Replace(folder)
}

func writeCharts(project *source.Project, images source.Images, folder string) error {
	files, err := chart.Files(project, images, icon)
	if err != nil {
		return err
	}
	return files.Replace(folder)
}
