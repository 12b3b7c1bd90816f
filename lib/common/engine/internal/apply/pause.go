package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// pauseOwner is the end of the field owner of spec.paused in the children of a paused object. It
// is another owner than that of the builders' fields: these do not change, and a child that a
// user has paused as well stays paused.
const pauseOwner = "-pause"

// Pause sets spec.paused of the children of Asterism's kinds, or gives the field up.
func (c *Children) Pause(ctx context.Context, paused bool) error {
	owner := c.Name + pauseOwner
	return c.eachWhere(ctx, func(_ observe.Key, child client.Object) bool {
		_, isOurs := child.(asterismObject)
		return isOurs && child.GetDeletionTimestamp() == nil && appliedBy(child, func(manager string) bool { return manager == owner }) != paused
	}, func(key observe.Key, child client.Object) error {
		body := &unstructured.Unstructured{Object: map[string]any{}}
		if paused {
			body.Object["spec"] = map[string]any{"paused": true}
		}
		body.SetGroupVersionKind(key.Kind)
		body.SetNamespace(key.Namespace)
		body.SetName(key.Name)
		body.SetUID(child.GetUID())
		err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(owner), client.ForceOwnership)
		_, err = c.written(key, body, err)
		return err
	})
}

// PausedByOwner tells whether the operator of the object's owner has paused the object.
func PausedByOwner(obj metav1.Object) bool {
	return appliedBy(obj, func(manager string) bool { return strings.HasSuffix(manager, pauseOwner) })
}

// appliedBy tells whether a manager has applied the object.
func appliedBy(obj metav1.Object, is func(manager string) bool) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply && is(entry.Manager)
	})
}
