package operator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trim is the transform of an operator's cache. It removes unused data from an object: the
// annotation of kubectl apply, and fields in managedFields, which are half of a small
// object. The fields of server-side apply stay, because the engine detects drift by them;
// the names of all managers stay as well.
func Trim(cached any) (any, error) {
	obj, ok := cached.(metav1.Object)
	if !ok {
		return cached, nil
	}
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		kept := metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource}
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			kept.FieldsV1 = entry.FieldsV1
		}
		entries = append(entries, kept)
	}
	obj.SetManagedFields(entries)
	delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return cached, nil
}
