package engine

import (
	"fmt"
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
	if _, done := cached.(*packed); done || !ok {
		return cached, nil
	}
	obj.SetManagedFields(trimManagedFields(obj))
	delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation) // kubectl's own memory
	trimMetadata(obj)
	switch obj := obj.(type) {
	case *corev1.PersistentVolume:
		return pack(obj, emptyVolume)
	case *corev1.PersistentVolumeClaim:
		// What it asks for is what counts, and who uses it now does not.
		obj.Status.Capacity, obj.Status.AllocatedResources, obj.Status.Conditions = nil, nil, nil
		return pack(obj, emptyClaim)
	case Object:
		trimStatus(obj)
	}
	obj.SetLabels(interned(obj.GetLabels()))
	obj.SetAnnotations(interned(obj.GetAnnotations()))
	return cached, nil
}

// trimMetadata shares its words: the names of labels are the same everywhere, and
// much of a child's metadata repeats its owner's.
func trimMetadata(obj metav1.Object) {
	obj.SetName(same(obj.GetName()))
	obj.SetNamespace(same(obj.GetNamespace()))
	obj.SetUID(same(obj.GetUID()))
	if finalizers := obj.GetFinalizers(); len(finalizers) == 1 {
		obj.SetFinalizers(sharedAs(alike, "["+finalizers[0], finalizers))
	}
	owners := obj.GetOwnerReferences()
	for i := range owners {
		o := &owners[i]
		o.APIVersion, o.Kind, o.Name, o.UID = same(o.APIVersion), same(o.Kind), same(o.Name), same(o.UID)
	}
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

// trimStatus shares the conditions, which are the same in all objects that became
// well in the same second, and at least their words.
func trimStatus(obj Object) {
	status := obj.Common()
	status.Conditions = slices.Clone(status.Conditions) // without what decoding has reserved
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = same(c.Type), same(c.Status), same(c.Reason), same(c.Message)
	}
	if isAllTrue(status.Conditions) {
		status.Conditions = sharedAs(alike, fmt.Sprint(status.Conditions), status.Conditions)
	}
	status.Completed = slices.Clone(status.Completed)
	for i := range status.Completed {
		c := &status.Completed[i]
		c.Stage, c.Inputs = same(c.Stage), same(c.Inputs)
	}
}

func isAllTrue(conditions []metav1.Condition) bool {
	return !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue })
}

// alike is what many objects have in common.
var alike = &shared{}

// maxShared bounds what is remembered: it is so many of the latest at least, and
// twice as many at most.
const maxShared = 2000

// shared keeps one copy of what is equal. What nobody has asked for since as many
// others came is forgotten.
type shared struct {
	mu            sync.Mutex
	latest, older map[string]any
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

func same[S ~string](word S) S { return S(sharedAs(alike, string(word), string(word))) }

// sharedAs returns the first value that came with the key. Keys say of which type
// their values are; those of another type are not shared.
func sharedAs[T any](s *shared, key string, value T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.latest[key].(T); ok {
		return known
	}
	if known, ok := s.older[key].(T); ok {
		value = known
	}
	if len(s.latest) >= maxShared || s.latest == nil {
		s.latest, s.older = map[string]any{}, s.latest
	}
	s.latest[key] = value
	return value
}
