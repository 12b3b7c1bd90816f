package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// drift is a change or removal of one field by another client.
type drift struct {
	path   []string // as in FieldsV1: "f:spec", "k:{…}", "v:…"
	remove bool
	was    any
}

func (d drift) String() string {
	verb := "changed"
	if d.remove {
		verb = "removed"
	}
	return strings.Join(d.path, " ") + " " + verb
}

// ownedFields returns the engine's entry in managedFields, as text.
func ownedFields(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == owner && entry.Operation == metav1.ManagedFieldsOperationApply {
			return string(entry.FieldsV1.GetRawBytes())
		}
	}
	return ""
}

// driftsOf returns two drifts for each field of an object that the engine owns.
func driftsOf(object *unstructured.Unstructured) []drift {
	var owned map[string]any
	if err := json.Unmarshal([]byte(ownedFields(object)), &owned); err != nil {
		panic(err) //nolint:forbidigo // the test itself is wrong
	}
	var all []drift
	collect(owned, nil, func(path []string) {
		was, ok := at(object.Object, path)
		if !ok || identity(path, object) {
			return
		}
		all = append(all, drift{path: path, was: was}, drift{path: path, was: was, remove: true})
	})
	return all
}

// identity tells whether a field is not tested. If an owner reference refers to an owner that
// does not exist, the garbage collector deletes the child; and the annotation identifies a
// child without a reference.
func identity(path []string, object *unstructured.Unstructured) bool {
	text := strings.Join(path, " ")
	if strings.Contains(text, "f:ownerReferences") {
		return path[len(path)-1] != "f:controller"
	}
	return len(object.GetOwnerReferences()) == 0 && strings.HasSuffix(text, "f:asterism.dev/owner")
}

func collect(owned map[string]any, path []string, leaf func([]string)) {
	for _, key := range slices.Sorted(maps.Keys(owned)) {
		if key == "." {
			continue
		}
		below := append(slices.Clone(path), key)
		fields, _ := owned[key].(map[string]any)
		if len(fields) == 0 {
			leaf(below)
			continue
		}
		collect(fields, below, leaf)
	}
}

// at returns the value at a path.
func at(value any, path []string) (any, bool) {
	for _, key := range path {
		switch parent := value.(type) {
		case map[string]any:
			child, ok := parent[strings.TrimPrefix(key, "f:")]
			if !ok {
				return nil, false
			}
			value = child
		case []any:
			position := element(parent, key)
			if position < 0 {
				return nil, false
			}
			value = parent[position]
		default:
			return nil, false
		}
	}
	return value, true
}

func element(list []any, key string) int {
	return slices.IndexFunc(list, func(e any) bool {
		if encoded, ok := strings.CutPrefix(key, "v:"); ok {
			text, _ := json.Marshal(e)
			return string(text) == encoded
		}
		var keys map[string]any
		fields, ok := e.(map[string]any)
		if !ok || json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys) != nil {
			return false
		}
		for name, value := range keys {
			if fmt.Sprint(fields[name]) != fmt.Sprint(value) {
				return false
			}
		}
		return true
	})
}

// apply applies the drift; it returns false if the object does not change.
func (d drift) apply(object *unstructured.Unstructured) bool {
	last := d.path[len(d.path)-1]
	parent, ok := at(object.Object, d.path[:len(d.path)-1])
	if !ok {
		return false
	}
	fields, ok := parent.(map[string]any)
	if !ok {
		return false // an element as a whole: its fields are tried
	}
	name := strings.TrimPrefix(last, "f:")
	if d.remove {
		delete(fields, name)
		return true
	}
	fields[name] = other(fields[name])
	return !reflect.DeepEqual(fields[name], d.was)
}

// holds tells whether the field has its original value.
func (d drift) holds(object *unstructured.Unstructured) bool {
	now, ok := at(object.Object, d.path)
	return ok && reflect.DeepEqual(now, d.was)
}

// other returns a different value.
func other(value any) any {
	switch value := value.(type) {
	case string:
		if strings.HasSuffix(value, "=") { // base64
			return "b3RoZXI="
		}
		return value + "x"
	case int64:
		return value + 1
	case float64:
		return value + 1
	case bool:
		return !value
	case map[string]any:
		changed := runtime.DeepCopyJSON(value)
		changed["other"] = "x"
		return changed
	}
	return nil
}

// TestAFieldCanBeRemovedAfterARepair: the merge patch of a repair must not become a second owner
// of the fields.
func TestAFieldCanBeRemovedAfterARepair(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: []client.Object{&corev1.Service{}}, Stages: []stage{
		build("ServiceReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			s := serviceOf(cr)
			if cr.Spec.Text == "two" {
				s.Spec.WithPorts(applycorev1.ServicePort().WithName("more").WithPort(8775))
			}
			return []engine.Child{s}
		}),
	}})
	cr := w.widget("repaired", widget.Spec{Text: "two"})
	w.awaitReady(cr)
	child := &corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name)}
	ports := func() (all []int32) {
		w.must(w.get(child))
		for _, port := range child.Spec.Ports {
			all = append(all, port.Port)
		}
		return all
	}
	w.Expect(ports()).To(ConsistOf(int32(8774), int32(8775)))
	for i := range child.Spec.Ports {
		if child.Spec.Ports[i].Name == "more" {
			child.Spec.Ports[i].Port = 9999 // an apply would make two ports of one name
		}
	}
	w.must(w.client.Update(w.ctx, child, client.FieldOwner("other-client")))
	w.Eventually(ports).Should(ConsistOf(int32(8774), int32(8775)))
	w.Expect(w.operator.Requests.Of("patch", "services")).NotTo(BeEmpty(), "the repair needs a merge patch")
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "one" })
	w.awaitReady(cr)
	w.Expect(ports()).To(ConsistOf(int32(8774)))
	for _, entry := range child.ManagedFields {
		w.Expect(entry.Manager).NotTo(HaveSuffix("-repair"))
	}
}

// TestAFightIsSlow: another controller forces its value as often as the engine restores its own.
func TestAFightIsSlow(t *testing.T) {
	w := newTestWorld(t)
	const atOnce, every = 10, 10 * time.Second // long enough for one restoration on a slow machine
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("ConfigReady")}}, func(s *engine.Seam) { s.RestoresAtOnce, s.RestoreEvery = atOnce, every })
	cr := w.widget("contested", widget.Spec{Text: "ours"})
	w.awaitReady(cr)
	w.operator.Requests.Reset()
	restored := func() int { return len(w.operator.Requests.Of("apply", "configmaps")) }
	fight := func() int {
		if w.textOf(cr.Name)() == "ours" {
			theirs := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "data": {"text": "theirs"}}`, cr.Name)
			w.must(w.client.Patch(w.ctx, w.configMap(cr.Name), client.RawPatch(types.ApplyPatchType, []byte(theirs)), client.FieldOwner("fighter"), client.ForceOwnership))
		}
		return restored()
	}
	began := time.Now()
	w.Eventually(func() string { // the condition is False only during a pause
		fight()
		return w.condition(cr, "ConfigReady")()
	}).Should(And(HavePrefix("False Waiting: ConfigMap"), ContainSubstring("is changed again and again"), HaveSuffix("fighter")))
	w.Expect(restored()).To(BeNumerically(">=", atOnce), "without a pause")
	w.Eventually(fight).Should(BeNumerically(">", atOnce))
	w.awaitReady(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal("ours"))
	w.Expect(restored()).To(BeNumerically("<=", atOnce+time.Since(began)/every), "all but the first ten have a pause")
}

// listingReader notes the namespace of every list of children.
type listingReader struct {
	client.Reader
	mu    *sync.Mutex
	scope map[string]bool
}

func (r listingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.FieldSelector != nil {
		r.mu.Lock()
		r.scope[fmt.Sprintf("%T %s", list, options.Namespace)] = true
		r.mu.Unlock()
	}
	return r.Reader.List(ctx, list, opts...)
}

// TestChildrenAreListedInOneNamespace: a list in every namespace costs one list for each
// namespace that the operator watches.
func TestChildrenAreListedInOneNamespace(t *testing.T) {
	w := newTestWorld(t)
	seen := listingReader{mu: &sync.Mutex{}, scope: map[string]bool{}}
	start(w, service{Name: owner, Owns: []client.Object{&corev1.ConfigMap{}, &corev1.Service{}, &corev1.PersistentVolume{}}, Stages: []stage{
		configMaps("ConfigReady"),
	}}, func(s *engine.Seam) {
		seen.Reader = s.Cached
		s.Cached = seen
	})
	cr := w.widget("scoped", widget.Spec{})
	w.awaitReady(cr)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	w.Expect(seen.scope).To(HaveKey("*v1.PersistentVolumeList "))
	w.Expect(seen.scope).To(HaveKey("*v1.ServiceList " + w.namespace))
	w.Expect(seen.scope).NotTo(HaveKey("*v1.ServiceList "))
}
