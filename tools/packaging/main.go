// Command packaging writes the packages of the operators: OLM bundles, the catalog and the
// manifests of dist. Its input is config, operators/*/config and the packaging.yaml files.
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
	"asterism.dev/tools/packaging/internal/install"
	"asterism.dev/tools/packaging/internal/output"
	"asterism.dev/tools/packaging/internal/source"
)

//go:embed icon.svg
var icon []byte

func main() {
	root := flag.String("root", "../..", "directory of the repository")
	flag.Parse()
	logrus.SetLevel(logrus.WarnLevel) // operator-registry reports each optional file that a bundle lacks
	if err := generate(*root); err != nil {
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
	if err := writeBundles(project, images, root); err != nil {
		return err
	}
	if err := writeCatalogs(project, images, root); err != nil {
		return err
	}
	manifests, err := install.Files(project, images)
	if err != nil {
		return err
	}
	return manifests.Write(filepath.Join(root, "dist"), "")
}

func writeBundles(project *source.Project, images bundle.Images, root string) error {
	for _, operator := range project.Operators {
		files, err := bundle.Files(project, operator, images, icon)
		if err != nil {
			return fmt.Errorf("bundle of %s: %w", operator.Name, err)
		}
		all := output.Files{"bundle.Dockerfile": bundle.Dockerfile(project, operator)}
		all.Include("bundle", files)
		if err := all.Write(filepath.Join(root, "operators", operator.Name), "bundle"); err != nil {
			return err
		}
	}
	return nil
}

// writeCatalogs keeps the bundles of earlier versions.
func writeCatalogs(project *source.Project, images bundle.Images, root string) error {
	packages, err := catalog.Packages(project, icon)
	if err != nil {
		return err
	}
	for _, render := range []catalog.Render{catalog.Release, catalog.OLMv1} {
		files := output.Files{}
		files.Include("", packages)
		for _, operator := range project.Operators {
			rendered, err := catalog.Bundle(project, operator, images, filepath.Join(root, "operators", operator.Name, "bundle"), render)
			if err != nil {
				return err
			}
			files.Include("", rendered)
		}
		if err := files.Write(filepath.Join(root, "catalog", string(render))); err != nil {
			return err
		}
	}
	return nil
}
