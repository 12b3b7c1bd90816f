package engine

import (
	"regexp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trim is for the manager's cache: it takes from an object what the engine never
// looks at, and lets objects share what many of them have in common, because an
// operator is as large as what it watches. A cached object is never changed:
// whoever gets it gets a copy.
func Trim(cached any) (any, error) {
	obj, ok := cached.(metav1.Object)
	if !ok {
		return cached, nil
	}
	obj.SetManagedFields(trimManagedFields(obj))
	delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation) // kubectl's own memory
	switch obj := obj.(type) {
	case Object:
		trimStatus(obj)
	case *corev1.PersistentVolume:
		obj.Spec.Capacity = alike.resources(obj.Spec.Capacity)
	case *corev1.PersistentVolumeClaim:
		obj.Spec.Resources.Requests = alike.resources(obj.Spec.Resources.Requests)
		obj.Status.Capacity, obj.Status.AllocatedResources = nil, nil // what it asks for is what counts
	}
	return cached, nil
}

// trimManagedFields keeps what was applied, see unchanged, and shares it between
// children; what others apply may be different each time.
func trimManagedFields(obj metav1.Object) []metav1.ManagedFieldsEntry {
	var applied []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			applied = append(applied, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, FieldsV1: entry.FieldsV1})
		}
	}
	if len(applied) == 1 && marked(obj) {
		return alike.managed(applied)
	}
	return slices.Clip(applied)
}

// trimStatus shares the words of conditions, which are the same in all objects
// that are well.
func trimStatus(obj Object) {
	status := obj.Common()
	status.Conditions = slices.Clone(status.Conditions) // without what decoding has reserved
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Reason = alike.word(c.Type), alike.word(c.Reason)
		c.Status = metav1.ConditionStatus(alike.word(string(c.Status)))
		if c.Status == metav1.ConditionTrue {
			c.Message = alike.word(c.Message)
		}
	}
	status.Completed = slices.Clone(status.Completed)
	for i := range status.Completed {
		status.Completed[i].Stage = alike.word(status.Completed[i].Stage)
	}
}

// alike is what many objects have in common.
var alike = &shared{known: map[string]any{}}

// maxShared bounds what is remembered, should nothing be alike after all.
const maxShared = 2000

// shared keeps one copy of what is equal.
type shared struct {
	mu    sync.Mutex
	known map[string]any
}

func (s *shared) managed(one []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	fields := anyOwner(one[0].FieldsV1.GetRawString())
	one[0].FieldsV1 = metav1.NewFieldsV1(fields)
	return sharedAs(s, one[0].Manager+" "+fields, one)
}

// ownersUID is the name of an owner in the list of its child's fields, in JSON.
var ownersUID = regexp.MustCompile(`k:\{\\"uid\\":\\"[^"\\]*\\"\}`)

// anyOwner takes the owner's UID from a list of fields, so that the children of all
// owners have the same. A child that we have applied has one owner.
func anyOwner(fields string) string { return ownersUID.ReplaceAllLiteralString(fields, "k:{}") }

// resources shares what is a capacity and nothing else.
func (s *shared) resources(list corev1.ResourceList) corev1.ResourceList {
	capacity, ok := list[corev1.ResourceStorage]
	if !ok || len(list) != 1 {
		return list
	}
	return sharedAs(s, "storage "+capacity.String(), list)
}

func (s *shared) word(word string) string { return sharedAs(s, word, word) }

// sharedAs returns the first value that came with the key. Values of different
// types must not come with the same key.
func sharedAs[T any](s *shared, key string, value T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[key].(T); ok {
		return known
	}
	if len(s.known) < maxShared {
		s.known[key] = value
	}
	return value
}
