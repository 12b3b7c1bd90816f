package catalog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/catalog"
)

const root = "../../../.."

// load returns the committed catalog, and that of OLM v1 which a release makes from it.
func load(t *testing.T) (release, v1 *declcfg.DeclarativeConfig) {
	t.Helper()
	files, err := output.Read(filepath.Join(root, "catalog", catalog.Release))
	if err != nil {
		t.Fatal(err)
	}
	other, err := catalog.WithoutDependencies(files)
	if err != nil {
		t.Fatal(err)
	}
	return loadFiles(t, files), loadFiles(t, other)
}

func loadFiles(t *testing.T, files output.Files) *declcfg.DeclarativeConfig {
	t.Helper()
	folder := t.TempDir()
	if err := files.Write(folder); err != nil {
		t.Fatal(err)
	}
	config, err := declcfg.LoadFS(t.Context(), os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestCatalogsAreValid: the checks of `opm validate`.
func TestCatalogsAreValid(t *testing.T) {
	release, v1 := load(t)
	for about, config := range map[string]*declcfg.DeclarativeConfig{catalog.Release: release, catalog.OLMv1: v1} {
		if _, err := declcfg.ConvertToModel(*config); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// TestTemplateHasTheChannelAndTheVersion: bundles name the channel of the project.
func TestTemplateHasTheChannelAndTheVersion(t *testing.T) {
	for about, change := range map[string]func(*source.Project){
		"another channel": func(p *source.Project) { p.Channel = "stable-v1" },
		"another version": func(p *source.Project) { p.Version = "9.9.9" },
		"the template's":  func(*source.Project) {},
	} {
		project, err := source.Read(root)
		if err != nil {
			t.Fatal(err)
		}
		change(project)
		_, err = catalog.Packages(project, nil)
		wrong := project.Channel == "stable-v1" || project.Version == "9.9.9"
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "one olm.channel "+project.Channel+" with the entry PACKAGE.v"+project.Version) {
			t.Errorf("%s: %v", about, err)
		}
	}
}

// TestVersionsWithoutABundleAreLeftOut: an operator that is added later has no bundle of the
// earlier versions in the graph. OLM still updates an operator whose version has lost its bundle.
func TestVersionsWithoutABundleAreLeftOut(t *testing.T) {
	folder := t.TempDir()
	for path, content := range map[string]string{
		catalog.Template: "schema: olm.package\nname: PACKAGE\ndefaultChannel: c\n---\nschema: olm.channel\npackage: PACKAGE\nname: c\nentries:\n" +
			"- name: PACKAGE.v1.0.0\n- {name: PACKAGE.v1.1.0, replaces: PACKAGE.v1.0.0}\n- {name: PACKAGE.v1.2.0, replaces: PACKAGE.v1.1.0}\n",
		source.ProjectFile: "{version: 1.2.0, channel: c}",
		"catalog/release/old-operator/old-operator.v1.0.0.yaml":     "",
		"catalog/release/old-operator/old-operator.v1.1.0.yaml":     "",
		"catalog/release/later-operator/later-operator.v1.1.0.yaml": "",
	} {
		if err := (output.Files{path: []byte(content)}).Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	project, err := source.ReadSettings(folder)
	if err != nil {
		t.Fatal(err)
	}
	project.Operators = []*source.Operator{{Name: "old"}, {Name: "later"}, {Name: "new"}}
	files, err := catalog.Packages(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"old": "v1.0.0 <- ; v1.1.0 <- v1.0.0; v1.2.0 <- v1.1.0", "later": "v1.1.0 <- v1.0.0; v1.2.0 <- v1.1.0", "new": "v1.2.0 <- v1.1.0",
	} {
		var graph []string
		config := loadFiles(t, output.Files{"package.yaml": files[name+"-operator/package.yaml"]})
		for _, entry := range config.Channels[0].Entries {
			graph = append(graph, entry.Name+" <- "+entry.Replaces)
			_, version, _ := strings.Cut(entry.Name, ".v")
			config.Bundles = append(config.Bundles, declcfg.Bundle{
				Schema: declcfg.SchemaBundle, Name: entry.Name, Package: name + "-operator", Image: "bundle",
				Properties: []property.Property{property.MustBuildPackage(name+"-operator", version)},
			})
		}
		if _, err := declcfg.ConvertToModel(*config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.ReplaceAll(strings.Join(graph, "; "), name+"-operator.", ""); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestCatalogsDifferOnlyInDependencies: OLM v1 refuses a bundle with dependencies.
func TestCatalogsDifferOnlyInDependencies(t *testing.T) {
	release, v1 := load(t)
	isDependency := func(p property.Property) bool {
		return slices.Contains([]string{property.TypeGVKRequired, property.TypePackageRequired, property.TypeConstraint}, p.Type)
	}
	found := false
	for i := range release.Bundles {
		properties := release.Bundles[i].Properties
		release.Bundles[i].Properties = slices.DeleteFunc(slices.Clone(properties), isDependency)
		found = found || len(release.Bundles[i].Properties) < len(properties)
		if slices.ContainsFunc(v1.Bundles[i].Properties, isDependency) {
			t.Errorf("%s has dependencies", v1.Bundles[i].Name)
		}
	}
	if !found {
		t.Error("no bundle of the release catalog has dependencies")
	}
	if encode(t, release) != encode(t, v1) {
		t.Error("the catalogs differ in more than dependencies")
	}
}

func encode(t *testing.T, config *declcfg.DeclarativeConfig) string {
	t.Helper()
	var content bytes.Buffer
	if err := declcfg.WriteYAML(*config, &content); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

// TestInstallPlanFits: OLM writes the manifests of bundles without images to one
// InstallPlan. etcd accepts 1.5 MiB.
func TestInstallPlanFits(t *testing.T) {
	project, err := source.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, operator := range project.Operators {
		directory := filepath.Join(root, "operators", operator.Name, "bundle")
		config, err := catalog.Imageless(directory)
		if err != nil {
			t.Fatal(err)
		}
		size := sizeOf(config)
		t.Logf("%s: %d bytes", operator.Package(), size)
		if size == 0 {
			t.Errorf("%s has no manifests", operator.Package())
		}
		sum += size
	}
	if limit := 1_200_000; sum > limit {
		t.Errorf("the manifests of all bundles have %d bytes, want at most %d", sum, limit)
	}
}

// sizeOf is the sum of the sizes of a bundle's objects as JSON, in bytes: OLM copies the
// objects of a bundle without image into the InstallPlan.
func sizeOf(config *declcfg.DeclarativeConfig) (size int) {
	for _, b := range config.Bundles {
		for _, object := range b.Objects {
			var compact bytes.Buffer
			if json.Compact(&compact, []byte(object)) == nil {
				size += compact.Len()
			}
		}
	}
	return size
}
