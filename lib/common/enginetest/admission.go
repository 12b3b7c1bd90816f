package enginetest

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Admission sends objects to the API server and returns its answers. Unknown fields are
// errors. Writes are dry runs, or are undone.
//
// Variants of an object are YAML merge patches (RFC 7386): null removes a field, a list
// replaces the list.
type Admission struct {
	t         testing.TB
	client    client.Client
	namespace string
}

// NewAdmission installs the CustomResourceDefinitions of the directories and creates a
// namespace.
func NewAdmission(t testing.TB, dirs ...string) Admission {
	t.Helper()
	InstallCRDs(t, dirs...)
	return Admission{t: t, client: client.WithFieldValidation(newClient(t), metav1.FieldValidationStrict), namespace: Namespace(t)}
}

// ReadSamples reads every object of a YAML file, relative to the test's package.
func ReadSamples(t testing.TB, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// ReadSample reads the only object of the kind.
func ReadSample(t testing.TB, path, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range ReadSamples(t, path) {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d objects of kind %s, want 1", path, len(found), kind)
	}
	return found[0]
}

// DecodeSample reads the only object of the kind into a typed object.
func DecodeSample(t testing.TB, path, kind string, into any) {
	t.Helper()
	content, err := yaml.Marshal(ReadSample(t, path, kind).Object)
	if err == nil {
		err = yaml.UnmarshalStrict(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", path, kind, err)
	}
}

// Create creates the patched object in a dry run. It returns the stored object, or the error
// of the API server.
func (a Admission) Create(object *unstructured.Unstructured, patch string) (*unstructured.Unstructured, error) {
	a.t.Helper()
	variant := a.patched(object, patch)
	err := a.client.Create(context.Background(), variant, client.DryRunAll)
	return variant, err
}

// Update creates the object, and patches it in a dry run. It returns the stored object, or
// the error of the API server.
func (a Admission) Update(object *unstructured.Unstructured, patch string) (*unstructured.Unstructured, error) {
	a.t.Helper()
	stored := a.patched(object, "{}")
	a.create(stored)
	defer a.delete(stored)
	variant := stored.DeepCopy()
	err := a.client.Patch(context.Background(), variant, client.RawPatch(types.MergePatchType, a.json(patch)), client.DryRunAll)
	return variant, err
}

// Columns creates the object with the status (a YAML mapping), and returns the columns of
// `kubectl get -o wide`, except Name and Age.
func (a Admission) Columns(object *unstructured.Unstructured, status string) map[string]any {
	a.t.Helper()
	stored := a.patched(object, "{}")
	a.create(stored)
	defer a.delete(stored)
	if err := a.client.Status().Patch(context.Background(), stored, client.RawPatch(types.MergePatchType, a.json(`{"status": `+string(a.json(status))+`}`))); err != nil {
		a.t.Fatalf("writing the status of %s %s: %v", stored.GetKind(), stored.GetName(), err)
	}
	var table metav1.Table
	content, err := a.restFor(stored).Get().Namespace(a.namespace).Resource(a.resource(stored)).Name(stored.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(context.Background())
	if err == nil {
		err = json.Unmarshal(content, &table)
	}
	if err != nil || len(table.Rows) != 1 {
		a.t.Fatalf("reading %s %s as a table: %d rows, error %v", stored.GetKind(), stored.GetName(), len(table.Rows), err)
	}
	columns := map[string]any{}
	for i, definition := range table.ColumnDefinitions {
		if definition.Name != "Name" && definition.Name != "Age" {
			columns[definition.Name] = table.Rows[0].Cells[i]
		}
	}
	return columns
}

// Scale creates the object, scales it like `kubectl scale`, and returns the resulting
// spec.replicas.
func (a Admission) Scale(object *unstructured.Unstructured, replicas int32) int64 {
	a.t.Helper()
	stored := a.patched(object, "{}")
	a.create(stored)
	defer a.delete(stored)
	scale := scaleTo(stored, int64(replicas))
	if err := a.client.SubResource("scale").Update(context.Background(), stored, client.WithSubResourceBody(scale)); err != nil {
		a.t.Fatalf("scaling %s %s: %v", stored.GetKind(), stored.GetName(), err)
	}
	if err := a.client.Get(context.Background(), client.ObjectKeyFromObject(stored), stored); err != nil {
		a.t.Fatal(err)
	}
	scaled, _, err := unstructured.NestedInt64(stored.Object, "spec", "replicas")
	if err != nil {
		a.t.Fatal(err)
	}
	return scaled
}

// scaleTo returns the Scale that `kubectl scale` sends.
func scaleTo(object client.Object, replicas int64) *unstructured.Unstructured {
	scale := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	scale.SetAPIVersion("autoscaling/v1")
	scale.SetKind("Scale")
	scale.SetName(object.GetName())
	scale.SetNamespace(object.GetNamespace())
	return scale
}

func (a Admission) create(object *unstructured.Unstructured) {
	a.t.Helper()
	if err := a.client.Create(context.Background(), object); err != nil {
		a.t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func (a Admission) delete(object *unstructured.Unstructured) {
	a.t.Helper()
	if err := a.client.Delete(context.Background(), object); err != nil {
		a.t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// patched returns a copy of the object in the test's namespace, with the patch applied.
func (a Admission) patched(object *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	a.t.Helper()
	var changes map[string]any
	if err := json.Unmarshal(a.json(patch), &changes); err != nil {
		a.t.Fatalf("patch %s: %v", patch, err)
	}
	variant := object.DeepCopy()
	variant.SetNamespace(a.namespace)
	variant.Object = merge(variant.Object, changes)
	return variant
}

// merge follows RFC 7386.
func merge(target, changes map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for key, change := range changes {
		switch change := change.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			below, _ := target[key].(map[string]any)
			target[key] = merge(below, change)
		default:
			target[key] = change
		}
	}
	return target
}

func (a Admission) json(document string) []byte {
	a.t.Helper()
	content, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		a.t.Fatalf("%v in:\n%s", err, document)
	}
	return content
}

func (a Admission) restFor(object *unstructured.Unstructured) rest.Interface {
	a.t.Helper()
	httpClient, err := rest.HTTPClientFor(Config(a.t))
	if err != nil {
		a.t.Fatal(err)
	}
	connection, err := apiutil.RESTClientForGVK(object.GroupVersionKind(), false, false, Config(a.t), scheme.Codecs, httpClient)
	if err != nil {
		a.t.Fatal(err)
	}
	return connection
}

func (a Admission) resource(object runtime.Object) string {
	a.t.Helper()
	kind := object.GetObjectKind().GroupVersionKind()
	mapping, err := a.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		a.t.Fatal(err)
	}
	return mapping.Resource.Resource
}
