package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
