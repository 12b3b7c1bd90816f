// Command packaging writes the packages of the operators: OLM bundles, the catalog, the
// manifests of dist and the Helm charts. Its input is config, operators/*/config and the packaging.yaml files.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"asterism.dev/tools/packaging/internal/bundle"
	"asterism.dev/tools/packaging/internal/catalog"
	"asterism.dev/tools/packaging/internal/chart"
	"asterism.dev/tools/packaging/internal/install"
	"asterism.dev/tools/packaging/internal/output"
	"asterism.dev/tools/packaging/internal/reference"
	"asterism.dev/tools/packaging/internal/source"
)

//go:embed icon.svg
var icon []byte

// renders are the catalogs of images.
var renders = []catalog.Render{catalog.Release, catalog.OLMv1}

func main() {
	root := flag.String("root", "../..", "directory of the repository")
	folder := flag.String("output", "", "folder of a release, which gets the bundles, catalogs and charts; default: the committed packages")
	registry := flag.String("registry", "", "host and path of the release's images (default: that of config/packaging.yaml)")
	version := flag.String("version", "", "version of the release (default: that of config/packaging.yaml)")
	digests := flag.String("digests", "", "images.yaml with the digests of the release's images, from tools/images")
	flag.Parse()
	logrus.SetLevel(logrus.WarnLevel) // operator-registry reports each optional file that a bundle lacks
	var err error
	if *folder == "" {
		err = generate(*root)
	} else {
		err = release(*root, *folder, *registry, *version, *digests)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "packaging: %v\n", err)
		os.Exit(1)
	}
}

// generate writes the committed packages of the project's version.
func generate(root string) error {
	project, err := source.Read(root)
	if err != nil {
		return err
	}
	images := bundle.ImagesOf(project)
	bundles := func(operator *source.Operator) string {
		return filepath.Join(root, "operators", operator.Name, "bundle")
	}
	for _, operator := range project.Operators {
		dockerfile := output.Files{"bundle.Dockerfile": bundle.Dockerfile(project, operator)}
		if err := dockerfile.Write(filepath.Dir(bundles(operator))); err != nil {
			return err
		}
	}
	if err := writeBundles(project, images, bundles); err != nil {
		return err
	}
	if err := writeCatalogs(project, images, bundles, filepath.Join(root, "catalog")); err != nil {
		return err
	}
	list, err := install.Images(project, images)
	if err != nil {
		return err
	}
	if err := writeManifests(project, images, list, filepath.Join(root, "dist")); err != nil {
		return err
	}
	page := output.Files{"api.md": reference.Page(project)}
	if err := page.Write(filepath.Join(root, "docs")); err != nil {
		return err
	}
	return writeCharts(project, images, filepath.Join(root, "charts"))
}

func writeBundles(project *source.Project, images bundle.Images, folder func(*source.Operator) string) error {
	for _, operator := range project.Operators {
		files, err := bundle.Files(project, operator, images, icon)
		if err != nil {
			return fmt.Errorf("bundle of %s: %w", operator.Name, err)
		}
		if err := files.Write(folder(operator), "."); err != nil {
			return err
		}
	}
	return nil
}

// writeCatalogs keeps the bundles of earlier versions.
func writeCatalogs(project *source.Project, images bundle.Images, bundles func(*source.Operator) string, folder string) error {
	packages, err := catalog.Packages(project, icon)
	if err != nil {
		return err
	}
	for _, render := range renders {
		files := output.Files{}
		files.Include("", packages)
		for _, operator := range project.Operators {
			rendered, err := catalog.Bundle(project, operator, images, bundles(operator), render)
			if err != nil {
				return err
			}
			files.Include("", rendered)
		}
		if err := files.Write(filepath.Join(folder, string(render))); err != nil {
			return err
		}
	}
	return nil
}

// writeManifests also writes the other files that belong in the folder.
func writeManifests(project *source.Project, images bundle.Images, others output.Files, folder string) error {
	files, err := install.Files(project, images)
	if err != nil {
		return err
	}
	files.Include("", others)
	return files.Write(folder, "")
}

func writeCharts(project *source.Project, images bundle.Images, folder string) error {
	files, err := chart.Files(project, images, icon)
	if err != nil {
		return err
	}
	return files.Write(folder, ".")
}
