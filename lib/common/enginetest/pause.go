package enginetest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkPause checks that a pass over the object of a fixture, if it were paused, calls no Do except
// that of Available, deletes nothing, and applies only paused of children.
func (s Subject[T]) checkPause(t testing.TB, all *problems, f fixture[T]) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.cr)
	if err == nil {
		err = unstructured.SetNestedField(content, true, "spec", "paused")
	}
	f.cr = f.cr.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, f.cr)
	}
	if err != nil {
		t.Fatal(err)
	}
	if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(f.cr); err != nil {
		t.Fatal(err)
	}
	if hasField, _, _ := unstructured.NestedBool(content, "spec", "paused"); hasField != f.cr.IsPaused() {
		all.add("IsPaused is %v, and spec.paused is %v", f.cr.IsPaused(), hasField)
	}
	if f.cr.GetDeletionTimestamp() != nil || !f.cr.IsPaused() {
		return
	}
	recorded := s.record(t, f, nil)
	for _, event := range recorded.log {
		if event != ": called outside" && !strings.HasPrefix(event, "applied ") {
			all.add("although it is paused: %s", event)
		}
	}
	for _, child := range recorded.applied {
		if spec := child.Object["spec"]; !reflect.DeepEqual(spec, map[string]any{"paused": true}) {
			all.add("although it is paused, %s %s is applied with spec %v", child.GetKind(), child.GetName(), spec)
		}
	}
	if !slices.Equal(f.cr.GetFinalizers(), recorded.cr.GetFinalizers()) {
		all.add("although it is paused, it has the finalizers %v", recorded.cr.GetFinalizers())
	}
}
