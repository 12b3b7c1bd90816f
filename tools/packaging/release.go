package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"asterism.dev/tools/packaging/internal/bundle"
	"asterism.dev/tools/packaging/internal/source"
)

// release writes the bundles, catalogs and charts of a release to a folder outside of the committed
// packages. The catalogs also have the committed bundles of earlier versions.
func release(root, folder, registry, version, digests string) error {
	project, err := source.Read(root)
	if err != nil {
		return err
	}
	if registry != "" {
		project.Registry = registry
	}
	if version != "" {
		project.Version = version
	}
	images := bundle.ImagesOf(project)
	if images.Digests, err = readDigests(digests); err != nil {
		return err
	}
	for _, render := range renders {
		target, committed := filepath.Join(folder, "catalog", string(render)), filepath.Join(root, "catalog", string(render))
		if err := os.RemoveAll(target); err != nil {
			return err
		}
		if err := os.CopyFS(target, os.DirFS(committed)); err != nil {
			return err
		}
	}
	bundles := func(operator *source.Operator) string { return filepath.Join(folder, "bundles", operator.Package()) }
	if err := writeBundles(project, images, bundles); err != nil {
		return err
	}
	if err := writeCatalogs(project, images, bundles, filepath.Join(folder, "catalog")); err != nil {
		return err
	}
	if err := writeManifests(project, images, nil, filepath.Join(folder, "dist")); err != nil {
		return err
	}
	return writeCharts(project, images, filepath.Join(folder, "charts"))
}

// readDigests returns the digests by reference. Without a file, the packages refer to
// images by tag.
func readDigests(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list struct {
		Images []struct{ Image, Digest string } `json:"images"`
	}
	if err := yaml.Unmarshal(content, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	digests := map[string]string{}
	for _, image := range list.Images {
		digests[image.Image] = image.Digest
	}
	return digests, nil
}
