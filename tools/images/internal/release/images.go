package release

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"asterism.dev/tools/images/internal/ociimage"
	"asterism.dev/tools/internal/archive"
	"asterism.dev/tools/internal/operatorimage"
	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
)

// Names of the catalogs' images.
const (
	catalogImage   = "catalog"
	catalogV1Image = "catalog-olmv1" // without dependencies, which OLM v1 refuses
)

// content is what an image is made from.
type content struct {
	name, kind, title, summary, description string
	config                                  v1.Config
	variants                                []ociimage.Variant
	programs                                []*debug.BuildInfo // by variant, nil for an image of data
}

func (r *release) operators(ctx context.Context) error {
	for _, operator := range r.project.Operators {
		image := content{
			name: operator.Package(), kind: kindOperator, title: operator.DisplayName,
			summary: operator.Summary, description: operator.Description,
			config: v1.Config{Entrypoint: []string{"/manager"}, User: operatorimage.User, WorkingDir: "/"},
		}
		for _, architecture := range r.architectures {
			r.note("build %s for %s", operator.Name, architecture)
			program, info, err := r.program(ctx, operator.Name, architecture)
			if err != nil {
				return err
			}
			files, err := r.licenses(ctx, info)
			if err != nil {
				return err
			}
			files = append(files, archive.File{Path: "manager", Mode: 0o755, Content: program})
			image.variants = append(image.variants, ociimage.Variant{Architecture: architecture, Files: files})
			image.programs = append(image.programs, info)
		}
		if err := r.add(image); err != nil {
			return err
		}
	}
	return nil
}

// program builds a program, and refuses a program that the image cannot run.
func (r *release) program(ctx context.Context, operator, architecture string) ([]byte, *debug.BuildInfo, error) {
	path, err := r.Program(ctx, operator, architecture)
	if err != nil {
		return nil, nil, err
	}
	built, err := operatorimage.Architecture(path)
	if err != nil {
		return nil, nil, err
	}
	if built != architecture {
		return nil, nil, fmt.Errorf("program %s is for %s instead of %s", path, built, architecture)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	program, err := os.ReadFile(path)
	return program, info, err
}

func (r *release) bundles(context.Context) error {
	for _, operator := range r.project.Operators {
		folder := filepath.Join(r.folder, bundlesFolder, operator.Package())
		var annotations struct {
			Annotations map[string]string `json:"annotations"`
		}
		if err := source.ReadYAML(filepath.Join(folder, "metadata", "annotations.yaml"), &annotations); err != nil {
			return err
		}
		err := r.addFolder(content{
			name: operator.Package() + "-bundle", kind: kindBundle, title: "Bundle of " + operator.DisplayName,
			summary: "The OLM bundle of the package " + operator.Package() + ".", description: operator.Summary,
			config: v1.Config{Labels: annotations.Annotations},
		}, folder, "")
		if err != nil {
			return err
		}
	}
	return nil
}

// catalogs adds images without a server: OLM extracts the files and serves them.
func (r *release) catalogs(context.Context) error {
	for _, catalog := range []struct{ folder, image string }{{"release", catalogImage}, {"olmv1", catalogV1Image}} {
		err := r.addFolder(content{
			name: catalog.image, kind: kindCatalog, title: r.project.Provider + " catalog",
			summary: "The OLM catalog of " + r.project.Provider + ".", description: "A file-based catalog of operators.",
			config: v1.Config{Labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}},
		}, filepath.Join(r.folder, catalogFolder, catalog.folder), "configs/")
		if err != nil {
			return err
		}
	}
	return r.list.write(filepath.Join(r.folder, ListFile))
}

// addFolder adds an image of the files of a folder. The files are the same for every
// architecture; the index has variants so that every node finds its own.
func (r *release) addFolder(image content, folder, prefix string) error {
	contents, err := output.Read(folder)
	if err != nil {
		return err
	}
	var files []archive.File
	for _, path := range slices.Sorted(maps.Keys(contents)) {
		files = append(files, archive.File{Path: prefix + filepath.ToSlash(path), Mode: 0o644, Content: contents[path]})
	}
	for _, architecture := range r.architectures {
		image.variants = append(image.variants, ociimage.Variant{Architecture: architecture, Files: files})
	}
	return r.add(image)
}

// add writes the image with its referrers to the layout, and adds the image to the list.
func (r *release) add(image content) error {
	annotations, labels := r.annotations(image), r.labels(image)
	maps.Copy(labels, annotations)
	maps.Copy(labels, image.config.Labels)
	image.config.Labels = labels
	index, err := ociimage.Index(image.variants, image.config, annotations, r.project.Created)
	if err != nil {
		return fmt.Errorf("%s: %w", image.name, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	entry := Image{Name: image.name, Kind: image.kind, Reference: r.Registry + "/" + image.name + ":v" + r.Version, Digest: digest.String()}
	reference := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": entry.Reference})
	if err := r.layout.AppendIndex(index, reference); err != nil {
		return err
	}
	stored, err := r.stored(digest) // from the disk, as the memory for all images would be large
	if err != nil {
		return err
	}
	referrers, err := r.referrers(image, entry, stored)
	if err != nil {
		return err
	}
	r.list.Images = append(r.list.Images, entry)
	r.published = append(r.published, published{entry, stored, referrers})
	return nil
}

func (r *release) stored(digest v1.Hash) (v1.ImageIndex, error) {
	all, err := r.layout.ImageIndex()
	if err != nil {
		return nil, err
	}
	return all.ImageIndex(digest)
}

// annotations are those of OCI, which are also labels of each image.
func (r *release) annotations(image content) map[string]string {
	const oci = "org.opencontainers.image."
	all := map[string]string{
		oci + "title":       image.title,
		oci + "description": image.summary,
		oci + "version":     r.Version,
		oci + "vendor":      r.project.Provider,
		oci + "authors":     r.project.maintainer(),
		oci + "licenses":    license,
		oci + "created":     r.project.Created.UTC().Format(time.RFC3339),
		oci + "source":      r.project.Repository,
	}
	if r.project.Revision != "" {
		all[oci+"revision"] = r.project.Revision
	}
	return all
}

// labels are those that OpenShift's certification requires.
func (r *release) labels(image content) map[string]string {
	description := strings.Join(strings.Fields(image.description), " ")
	return map[string]string{
		"name":                image.name,
		"vendor":              r.project.Provider,
		"version":             r.Version,
		"release":             "1",
		"summary":             image.summary,
		"description":         description,
		"maintainer":          r.project.maintainer(),
		"io.k8s.display-name": image.title,
		"io.k8s.description":  description,
		"url":                 r.project.Repository,
	}
}
