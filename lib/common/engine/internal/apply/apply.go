package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// conflictRetry is after how long a child is looked at again that changed while
// it was written.
const conflictRetry = time.Second

// update sends the child if that would change anything.
func (c *Children) update(ctx context.Context, d desired, current client.Object) (client.Object, error) {
	if err := c.claimed(d.key, current); err != nil {
		return nil, err
	}
	if unchanged(current, c.Name, d.hash, d.body) {
		return current, nil
	}
	if d.Mode == Replaced && current.GetAnnotations()[annotationHash] != d.hash {
		if err := c.delete(ctx, d.key, current); err != nil {
			return nil, err
		}
		return nil, progressing("%s is being replaced", d.key)
	}
	return c.send(ctx, d, current.GetUID())
}

// claimed returns an error unless the object is a child and here to stay.
func (c *Children) claimed(key observe.Key, current client.Object) error {
	if !c.IsOurs(current) {
		return Foreign(key, current)
	}
	if current.GetDeletionTimestamp() != nil {
		return progressing("%s is being deleted", key)
	}
	return nil
}

// create sends the child so that it is created or, if the name is taken, refused.
//
// An object never has resourceVersion 1, so an apply that states it answers 409
// where something exists, and creates where nothing does: a plain apply would
// merge into whatever it finds.
func (c *Children) create(ctx context.Context, d desired) (client.Object, error) {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
	body.SetResourceVersion("1")
	made, err := c.apply(ctx, d.key, body)
	if errors.IsConflict(err) {
		existing, readErr := c.View.Live(ctx, d.key)
		if readErr != nil || existing == nil {
			return nil, fmt.Errorf("creating %s: %w", d.key, err)
		}
		c.View.Created(d.key, existing)
		if d.Mode == Generated || d.Mode == Once { // which are never changed
			return existing, nil
		}
		return c.update(ctx, d, existing)
	}
	if err != nil {
		return nil, refused(d.key, err)
	}
	c.View.Created(d.key, made)
	return made, nil
}

// send applies the child onto the object with the UID, and no other.
func (c *Children) send(ctx context.Context, d desired, uid types.UID) (client.Object, error) {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(d.body)}
	body.SetUID(uid)
	made, err := c.apply(ctx, d.key, body.DeepCopy())
	if errors.IsInvalid(err) && c.repair(ctx, body) == nil {
		made, err = c.apply(ctx, d.key, body.DeepCopy())
	}
	if err != nil {
		return nil, refused(d.key, err)
	}
	c.View.Wrote(d.key, made)
	return made, nil
}

// repair an object for which an element that somebody else has added to a list
// makes every apply invalid. A merge patch replaces lists as a whole.
func (c *Children) repair(ctx context.Context, body *unstructured.Unstructured) error {
	patch, err := json.Marshal(body.Object)
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, body.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(c.Name+"-repair"))
}

// apply returns the object as the API server answered.
func (c *Children) apply(ctx context.Context, key observe.Key, body *unstructured.Unstructured) (client.Object, error) {
	if err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(c.Name), client.ForceOwnership); err != nil {
		return nil, err
	}
	return c.View.Decode(key.Kind, body.Object)
}

// refused turns the API server's answer into what it means for the stage.
func refused(key observe.Key, err error) error {
	switch {
	case errors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waiting("namespace %s is being deleted", key.Namespace)
	case errors.IsInvalid(err), errors.IsBadRequest(err):
		return &Outcome{Reason: ReasonInvalid, Message: fmt.Sprintf("%s was refused: %s", key, err), Stalled: true}
	case errors.IsConflict(err):
		return &Outcome{Reason: ReasonWaiting, Message: fmt.Sprintf("%s changed while it was written", key), After: conflictRetry}
	}
	return fmt.Errorf("applying %s: %w", key, err)
}
