package enginetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"asterism.dev/lib/common/engine"
)

// annotationNotServed is an annotation of a fixture's CR that lists the kinds that the API
// server does not serve in this fixture, separated by commas.
const annotationNotServed = "enginetest/not-served"

// Subject is one kind under test.
type Subject[T engine.Object] struct {
	Service engine.Service[T]
	// AddToScheme has the function of T's API package, and of the API packages of Asterism
	// kinds that the service owns or needs.
	AddToScheme []func(*runtime.Scheme) error
	// Conditions are the condition types that T's API package exports.
	Conditions []string
	// CRDs are folders with definitions of other operators' kinds that the service owns or
	// needs, relative to the test; config/crd of the service's module is always read.
	CRDs []string
	// RoleFile is the generated Role. Default: config/rbac/role.yaml of the service's module.
	RoleFile string
	// Explained are the rights that the service's Explained children need.
	Explained []Right
	// Testdata is the folder of the fixtures. Default: testdata. Each fixture is a folder with
	// an in.yaml, which has the CR and then all other existing objects.
	Testdata string
}

// fixture is one in.yaml.
type fixture[T engine.Object] struct {
	name    string
	dir     string
	cr      T
	objects []*unstructured.Unstructured
	absent  map[string]bool
	hashKey string // of the hashes that the engine publishes, see hashKey
}

func (s Subject[T]) testdata() string {
	if s.Testdata == "" {
		return "testdata"
	}
	return s.Testdata
}

func (s Subject[T]) crds(t testing.TB) []string {
	t.Helper()
	own := filepath.Join(moduleRoot(t), "config", "crd")
	if _, err := os.Stat(own); err != nil {
		return s.CRDs
	}
	return append([]string{own}, s.CRDs...)
}

func (s Subject[T]) role(t testing.TB) string {
	t.Helper()
	if s.RoleFile == "" {
		return filepath.Join(moduleRoot(t), "config", "rbac", "role.yaml")
	}
	return s.RoleFile
}

// moduleRoot returns the folder with the go.mod of the package under test.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("the test does not run in a Go module")
	return ""
}

func (s Subject[T]) fixtures(t testing.TB) []fixture[T] {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.testdata(), "*", "in.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s/*/in.yaml (error: %v)", s.testdata(), err)
	}
	var all []fixture[T]
	namespaced := s.namespaced(t)
	for _, path := range paths {
		f, err := s.load(path, namespaced)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, f)
	}
	return all
}

// namespaced returns a function that tells whether a kind has a namespace.
func (s Subject[T]) namespaced(t testing.TB) func(kind string) bool {
	t.Helper()
	without := maps.Clone(clusterScoped)
	for _, definition := range s.definitions(t) {
		if definition.Spec.Scope == apiextensionsv1.ClusterScoped {
			without[definition.Spec.Names.Kind] = true
		}
	}
	return func(kind string) bool { return !without[kind] }
}

func (s Subject[T]) load(path string, namespaced func(kind string) bool) (fixture[T], error) {
	f := fixture[T]{dir: filepath.Dir(path), absent: map[string]bool{}}
	f.name = filepath.Base(f.dir)
	documents, err := readDocuments(path)
	if err != nil {
		return f, err
	}
	if len(documents) == 0 {
		return f, errors.New("the file is empty: its first document must be the CR")
	}
	cr := documents[0]
	annotations := cr.GetAnnotations()
	for kind := range strings.SplitSeq(annotations[annotationNotServed], ",") {
		f.absent[strings.TrimSpace(kind)] = true
	}
	delete(annotations, annotationNotServed)
	cr.SetAnnotations(annotations)
	if cr.GetNamespace() == "" && namespaced(cr.GetKind()) {
		cr.SetNamespace("openstack")
	}
	if cr.GetUID() == "" {
		cr.SetUID(types.UID("00000000-0000-4000-8000-000000000001"))
	}
	if cr.GetGeneration() == 0 {
		cr.SetGeneration(1)
	}
	content, err := json.Marshal(cr.Object)
	if err != nil {
		return f, err
	}
	if wanted := reflect.TypeFor[T]().Elem().Name(); cr.GetKind() != wanted {
		return f, fmt.Errorf("the first document is a %s: it must be the %s", cr.GetKind(), wanted)
	}
	// The decoder of sigs.k8s.io/yaml sets a pointer of an embedded struct when a struct beside it
	// has a field of the same name.
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f.cr); err != nil {
		return f, fmt.Errorf("the first document is not a %T: %w", f.cr, err)
	}
	for i, object := range documents[1:] {
		if object.GetNamespace() == "" && namespaced(object.GetKind()) {
			object.SetNamespace(cr.GetNamespace())
		}
		if object.GetUID() == "" {
			object.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i+2)))
		}
		f.objects = append(f.objects, object)
	}
	return f, nil
}

// readDocuments refuses a document with two objects, of which the keys are duplicates.
func readDocuments(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var all []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			document, err = yaml.YAMLToJSONStrict(document)
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = utiljson.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// clusterIdentity returns the namespace whose UID identifies the cluster.
func clusterIdentity() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "kube-system", "uid": "00000000-0000-4000-8000-000000000000"},
	}}
}

func (s Subject[T]) definitions(t testing.TB) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return definitions(t, append(s.crds(t), append(exposureDefinitions(t), networkDefinition(t))...))
}

// typed converts an object of a fixture to the typed object that an API server would store.
func typed(t testing.TB, scheme *runtime.Scheme, object *unstructured.Unstructured) client.Object {
	t.Helper()
	empty, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		t.Fatalf("%s %s: %v: add its API package to AddToScheme", object.GetKind(), object.GetName(), err)
	}
	content := object.DeepCopy()
	if texts, ok, _ := unstructured.NestedStringMap(content.Object, "stringData"); ok {
		unstructured.RemoveNestedField(content.Object, "stringData")
		data, _, _ := unstructured.NestedMap(content.Object, "data")
		if data == nil {
			data = map[string]any{}
		}
		for key, text := range texts {
			data[key] = []byte(text)
		}
		content.Object["data"] = data
	}
	encoded, err := yaml.Marshal(content.Object)
	if err == nil {
		err = yaml.UnmarshalStrict(encoded, empty)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return empty.(client.Object) //nolint:forcetypeassert // every kind of a fixture has metadata
}

// exposureDefinitions returns the paths of the definitions of Route and HTTPRoute, in the
// modules with their types.
func exposureDefinitions(t testing.TB) []string {
	t.Helper()
	return []string{
		filepath.Join(moduleFolder(t, "github.com/openshift/api"), "route", "v1", "zz_generated.crd-manifests"),
		filepath.Join(moduleFolder(t, "sigs.k8s.io/gateway-api"), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"),
	}
}

var moduleFolders sync.Map

func moduleFolder(t testing.TB, module string) string {
	t.Helper()
	if known, ok := moduleFolders.Load(module); ok {
		return known.(string) //nolint:forcetypeassert // stored below
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	folder := strings.TrimSpace(string(out))
	moduleFolders.Store(module, folder)
	return folder
}

// networkDefinition returns the path of the definition of NetworkAttachmentDefinition.
func networkDefinition(t testing.TB) string {
	t.Helper()
	return filepath.Join(moduleFolder(t, "asterism.dev/lib/common"), "multus", "testdata", "networkattachmentdefinition.yaml")
}

// InstallNetworks installs the definition of NetworkAttachmentDefinition; no Multus attaches
// pods.
func InstallNetworks(t testing.TB) {
	t.Helper()
	InstallCRDs(t, networkDefinition(t))
}

// InstallExposures installs the definitions of Route and HTTPRoute; no router admits them.
func InstallExposures(t testing.TB) {
	t.Helper()
	InstallCRDs(t, exposureDefinitions(t)...)
}
