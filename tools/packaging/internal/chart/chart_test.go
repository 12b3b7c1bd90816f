package chart_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/downloader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/getter"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/output"
	"asterism.dev/tools/internal/source"
	"asterism.dev/tools/packaging/internal/chart"
)

const (
	root      = "../../../.."
	namespace = "asterism-system"
)

var (
	readProject = sync.OnceValues(func() (*source.Project, error) { return source.Read(root) })
	makeFiles   = sync.OnceValues(func() (output.Files, error) {
		project, err := readProject()
		if err != nil {
			return nil, err
		}
		return chart.Files(project, source.ImagesOf(project), []byte("<svg/>"))
	})
)

func project(t *testing.T) *source.Project {
	t.Helper()
	project, err := readProject()
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func allFiles(t *testing.T) output.Files {
	t.Helper()
	files, err := makeFiles()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// filesOf returns the files of one chart.
func filesOf(t *testing.T, name string) output.Files {
	t.Helper()
	found := output.Files{}
	for path, content := range allFiles(t) {
		if below, ok := strings.CutPrefix(path, name+"/"); ok {
			found[below] = content
		}
	}
	if len(found) == 0 {
		t.Fatalf("no chart has the name %s", name)
	}
	return found
}

// load returns a chart with its dependencies.
func load(t *testing.T, name string) *helm.Chart {
	t.Helper()
	var files []*archive.BufferedFile
	for path, content := range filesOf(t, name) {
		files = append(files, &archive.BufferedFile{Name: path, Data: content})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatalf("chart %s: %v", name, err)
	}
	for _, dependency := range loaded.Metadata.Dependencies {
		loaded.AddDependency(load(t, dependency.Name))
	}
	return loaded
}

// names are the names of all charts.
func names(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	for path := range allFiles(t) {
		name, _, _ := strings.Cut(path, "/")
		found[name] = true
	}
	if len(found) == 0 {
		t.Fatal("the generator makes no charts")
	}
	return slices.Sorted(maps.Keys(found))
}

// charts of operators end in -operator; the others, besides the umbrella, are of services.
func isService(name string) bool {
	return !strings.HasSuffix(name, "-operator") && name != chart.Umbrella
}

func values(t *testing.T, content string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(content), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// tryRender does what `helm template` does.
func tryRender(t *testing.T, name, in string, given map[string]any) (map[string]string, error) {
	t.Helper()
	loaded := load(t, name)
	if err := chartutil.ProcessDependencies(loaded, given); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "demo", Namespace: in, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(t.Context(), loaded, all)
}

// render returns the objects of a chart by "Kind namespace/name", and its notes.
func render(t *testing.T, name, in string, given map[string]any) (objects map[string]*unstructured.Unstructured, notes string) {
	t.Helper()
	rendered, err := tryRender(t, name, in, given)
	if err != nil {
		t.Fatalf("chart %s: %v", name, err)
	}
	objects = map[string]*unstructured.Unstructured{}
	for path, content := range rendered {
		if strings.HasSuffix(path, "NOTES.txt") {
			if strings.HasPrefix(path, name+"/templates/") {
				notes = content
			}
			continue
		}
		for document := range strings.SplitSeq("\n"+content, "\n---\n") {
			object := &unstructured.Unstructured{}
			encoded, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			if string(encoded) == "null" {
				continue
			}
			if err := object.UnmarshalJSON(encoded); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			if objects[id(object)] != nil {
				t.Errorf("chart %s renders %s twice", name, id(object))
			}
			objects[id(object)] = object
		}
	}
	return objects, notes
}

func id(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// examples are the values with which each chart is linted and rendered: the examples of a
// service, and the default values of other charts.
func examples(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	if !isService(name) {
		return map[string]map[string]any{"default": {}}
	}
	found := map[string]map[string]any{}
	for path, content := range filesOf(t, name) {
		if strings.HasPrefix(path, "ci/") {
			found[filepath.Base(path)] = values(t, string(content))
		}
	}
	if len(found) == 0 {
		t.Fatalf("chart %s has no examples", name)
	}
	return found
}

func TestHelmsLinterHasNoComplaints(t *testing.T) {
	folder := t.TempDir()
	if err := allFiles(t).Write(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t) {
		for example, given := range examples(t, name) {
			t.Run(name+" "+example, func(t *testing.T) {
				if name == chart.Umbrella {
					buildDependencies(t, filepath.Join(folder, name))
				}
				for _, message := range lint.RunAll(filepath.Join(folder, name), given, namespace).Messages {
					if message.Severity >= support.InfoSev {
						t.Error(message)
					}
				}
			})
		}
	}
}

// buildDependencies is `helm dependency build`. A home without repositories shows that the
// command needs no network.
func buildDependencies(t *testing.T, folder string) {
	t.Helper()
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	settings := cli.New()
	manager := &downloader.Manager{
		Out: io.Discard, ChartPath: folder, Getters: getter.All(settings),
		RepositoryConfig: settings.RepositoryConfig, RepositoryCache: settings.RepositoryCache, ContentCache: settings.ContentCache,
	}
	if err := manager.Build(); err != nil {
		t.Fatal(err)
	}
}

func TestReleaseFitsIntoASecret(t *testing.T) {
	const limit = 1 << 20 // of Kubernetes, for a Secret
	for _, name := range names(t) {
		for _, given := range examples(t, name) {
			if name == chart.Umbrella {
				given = values(t, "operators: {shared-volume: true}")
			}
			rendered, err := tryRender(t, name, namespace, given)
			if err != nil {
				t.Fatal(err)
			}
			if size := stored(t, load(t, name), rendered); size > limit/2 {
				t.Errorf("a release of chart %s takes %d bytes, more than half of a Secret", name, size)
			} else if name == chart.Umbrella {
				t.Logf("a release of chart %s takes %d bytes", name, size)
			}
		}
	}
}

// stored is the size of a release in Helm's Secret: the chart without its dependencies and
// the manifests, as compressed JSON in base64.
func stored(t *testing.T, loaded *helm.Chart, rendered map[string]string) int {
	t.Helper()
	content, err := json.Marshal(map[string]any{"chart": loaded, "manifest": rendered})
	if err != nil {
		t.Fatal(err)
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodedLen(compressed.Len())
}
