package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/operatorimage"
	"asterism.dev/tools/internal/progress"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/packages"
)

// operators returns the operators that the demo deploys: all, on an existing cluster except
// the operator of shared volumes, whose driver needs EFS.
func (d *demo) operators() ([]string, error) {
	modules, err := filepath.Glob(filepath.Join(d.root, "operators", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, module := range modules {
		if name := filepath.Base(filepath.Dir(module)); name != sharedVolume || !d.existing {
			names = append(names, name)
		}
	}
	return names, nil
}

// operatorOf returns the operator of one of Asterism's kinds.
func (d *demo) operatorOf(kind string) (string, error) {
	project, err := source.Read(d.root)
	if err != nil {
		return "", err
	}
	for _, operator := range project.Operators {
		if operator.CRD(kind) != nil {
			return operator.Name, nil
		}
	}
	return "", fmt.Errorf("no operator has the kind %s", kind)
}

// buildOperators builds a static binary and an image of each operator. The image's tag is
// the binary's digest, so that only changed operators are deployed again.
func (d *demo) buildOperators(ctx context.Context, line *progress.Line) error {
	names, err := d.operators()
	if err != nil {
		return err
	}
	d.tags = map[string]string{}
	for i, name := range names {
		part := fmt.Sprintf("%s (%d of %d)", name, i+1, len(names))
		if d.tags[name], err = d.buildOperator(ctx, line, part, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) buildOperator(ctx context.Context, line *progress.Line, part, name string) (tag string, err error) {
	binary := d.work("bin", name+"-operator")
	err = d.build(ctx, line, part, name, gobuild.Program{
		Dir: d.root, Workspace: filepath.Join(d.root, "go.work"), Output: binary,
		Packages: []string{"./" + filepath.Join("operators", name, "cmd")},
	})
	if err != nil {
		return "", err
	}
	if tag, err = digest(binary); err != nil {
		return "", err
	}
	archive := d.operatorArchive(name, tag)
	if _, err := os.Stat(archive); err == nil {
		return tag, nil
	}
	if err := d.removeArchives(name); err != nil {
		return "", err
	}
	return tag, operatorimage.Write(operatorImage(name)+":"+tag, binary, archive)
}

// registryOfDemo is the prefix of the images that no registry has.
const registryOfDemo = "asterism.dev"

func operatorImage(name string) string { return registryOfDemo + "/" + name + "-operator" }

func (d *demo) operatorArchive(name, tag string) string {
	return d.work("images", name+"-operator-"+tag+".tar")
}

// removeArchives removes the archives of earlier binaries.
func (d *demo) removeArchives(name string) error {
	old, err := filepath.Glob(d.operatorArchive(name, "????????????"))
	for _, path := range old {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// digest returns a short digest of files, for names.
func digest(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}

// image returns the name under which the cluster pulls an image of asterism.dev.
func (d *demo) image(name string) string {
	if d.registry == "" {
		return name
	}
	return strings.TrimSuffix(d.registry, "/") + strings.TrimPrefix(name, registryOfDemo)
}

// installations are the ways to deploy the operators without the demo. Each is an overlay
// in the work folder with the built images.
var installations = []struct{ overlay, folder, description string }{
	{"default", "config/default", "all operators"},
	{"control-plane", "config/control-plane", "the control plane's operators, for the namespaces that are handed over to them"},
	{"all-namespaces", "config/all-namespaces", "the control plane's operators, for every namespace"},
	{"shared-volume", "config/shared-volume", "the operator of shared volumes"},
}

// writeInstallations also writes the examples of getting-started.md, with the image of the
// registry.
func (d *demo) writeInstallations() error {
	for _, install := range installations {
		if err := d.writeKustomization(install.overlay, install.folder, d.operatorOverrides()); err != nil {
			return err
		}
	}
	for _, example := range []string{"demo", "demo-compute"} {
		if _, err := d.folder(example); err != nil {
			return err
		}
	}
	return nil
}

// writeOverlay writes the manifests of a release, and the overlay with which the demo deploys
// them: on an existing cluster without the operator of shared volumes, whose driver needs EFS.
func (d *demo) writeOverlay() error {
	project, err := source.Read(d.root)
	if err != nil {
		return err
	}
	const folder = "manifests"
	if err := packages.WriteManifests(project, source.Images{Registry: registryOfDemo, Tag: "demo"}, d.work(folder)); err != nil {
		return err
	}
	manifests, changes := "resources: [install.yaml]\n", []types.Patch(nil)
	if !d.existing {
		manifests = "resources: [install.yaml, shared-volume.yaml]\n"
		changes = append(changes, d.driverImages())
	}
	if err := os.WriteFile(d.work(folder, "kustomization.yaml"), []byte(manifests), 0o644); err != nil {
		return err
	}
	return d.writeKustomization("operators", filepath.Join(".demo", folder), d.operatorOverrides(), changes...)
}

func (d *demo) operatorOverrides() []types.Image {
	var images []types.Image
	for name, tag := range d.tags {
		images = append(images, types.Image{Name: operatorImage(name), NewName: d.image(operatorImage(name)), NewTag: tag})
	}
	slices.SortFunc(images, func(a, b types.Image) int { return strings.Compare(a.Name, b.Name) })
	return images
}

// writeKustomization writes a kustomization of a folder of the repository, with other
// images and with patches.
func (d *demo) writeKustomization(name, folder string, images []types.Image, patches ...types.Patch) error {
	target := d.work(name)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	resource, err := filepath.Rel(target, filepath.Join(d.root, folder))
	if err != nil {
		return err
	}
	content, err := yaml.Marshal(types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{resource}, Images: images, Patches: patches,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, "kustomization.yaml"), content, 0o644)
}
