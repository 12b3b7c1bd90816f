package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// raceRetry is the time until the next look at a child that another client changed while
// it was written.
const raceRetry = time.Second

// refusalRetry is the time until an object that the API server has refused is sent again: the
// cause may be another object or an older definition, and no event reports its end.
const refusalRetry = 5 * time.Minute

// update sends the child if it differs from the cluster's version, to the object with the same
// UID and to no other. If the API server refuses it, a Replaced child that its owner has changed
// is deleted, and any other object is repaired. A change by another client deletes no child: a
// policy may refuse what is recreated as well.
func (c *Children) update(ctx context.Context, want stampedChild, current client.Object) (client.Object, error) {
	if err := c.requireOurs(want.key, current); err != nil {
		return nil, err
	}
	if unchanged(current, c.Name, want.hash, want.body) || c.contested(want) != nil {
		return current, nil //nolint:nilerr // the stage reports a fight
	}
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(want.body)}
	body.SetUID(current.GetUID())
	answer := body.DeepCopy()
	err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), client.FieldOwner(c.Name), client.ForceOwnership)
	switch {
	case !errors.IsInvalid(err):
	case want.Mode == Replaced && current.GetAnnotations()[annotationHash] != want.hash:
		if err := c.delete(ctx, want.key, current); err != nil {
			return nil, err
		}
		return nil, progressing("%s is being replaced", want.key)
	default:
		answer, err = c.repair(ctx, body, err)
	}
	if err == nil {
		c.noteRestored(want, current)
	}
	return c.written(want.key, answer, err)
}

// requireOurs returns an error unless the object is a child that is not being deleted.
func (c *Children) requireOurs(key observe.Key, current client.Object) error {
	if !c.IsChild(current) {
		return ForeignOutcome(key, current)
	}
	if current.GetDeletionTimestamp() != nil {
		return beingDeleted(key, current)
	}
	return nil
}

// create creates the child. If an object of that name exists and is a child, it is updated.
//
// No object has resourceVersion 1. Therefore, an apply with this version returns 409 if
// the object exists, and creates the object otherwise. An apply without a version would
// change an existing object.
func (c *Children) create(ctx context.Context, want stampedChild) (client.Object, error) {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(want.body)}
	body.SetResourceVersion("1")
	err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(c.Name), client.ForceOwnership)
	if !errors.IsConflict(err) {
		return c.written(want.key, body, err)
	}
	existing, readErr := c.View.Live(ctx, want.key)
	if readErr != nil || existing == nil {
		return nil, fmt.Errorf("creating %s: %w", want.key, err)
	}
	c.View.NoteWrite(want.key, existing)             // newer than the watch, like a write
	if want.Mode == Generated || want.Mode == Once { // children of these modes never change
		return existing, nil
	}
	return c.update(ctx, want, existing)
}

// written notes the API server's answer to a write, and returns it as an object. err is the
// error of the write.
func (c *Children) written(key observe.Key, answer *unstructured.Unstructured, err error) (client.Object, error) {
	if err != nil {
		return nil, OutcomeOfWrite(key, err)
	}
	object, err := c.View.Decode(key.Kind, answer.Object)
	if err != nil {
		return nil, OutcomeOfWrite(key, err)
	}
	c.View.NoteWrite(key, object)
	return object, nil
}

// repair removes list elements of other clients that make every apply to the object invalid, and
// applies the body again; refused is the error of the first apply. It sends a merge patch, which
// replaces whole lists, and then gives the fields that the patch has written to the owner of the
// child: a second owner would keep them when the child no longer has them.
func (c *Children) repair(ctx context.Context, body *unstructured.Unstructured, refused error) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	repaired, repairer := body.DeepCopy(), c.Name+"-repair"
	err = c.Client.Patch(ctx, repaired, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(repairer))
	if err == nil {
		patch, err = csaupgrade.UpgradeManagedFieldsPatch(repaired, sets.New(repairer), c.Name)
	}
	if err == nil && patch != nil {
		err = c.Client.Patch(ctx, repaired, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(repairer))
	}
	switch {
	case errors.IsConflict(err):
		return nil, err
	case err != nil:
		return nil, refused
	}
	answer := body.DeepCopy()
	return answer, c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), client.FieldOwner(c.Name), client.ForceOwnership)
}

// skewRetry is the time until a child is sent again whose CRD is older than this operator: during
// an upgrade, the operator of the child's kind follows soon.
const skewRetry = 15 * time.Second

// OutcomeOfWrite turns the error of a write into an outcome with a reason, if the engine
// knows the error.
func OutcomeOfWrite(key observe.Key, err error) error {
	switch {
	case errors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waiting("namespace %s is being deleted", key.Namespace)
	case errors.IsInvalid(err), errors.IsBadRequest(err):
		return &Outcome{Reason: ReasonInvalid, Message: fmt.Sprintf("the API server refuses %s: %s", key, err), Stalled: true, After: refusalRetry, Cause: err}
	case strings.Contains(err.Error(), "field not declared in schema"): // HTTP 500: managedfields, structuredmerge.go
		return &Outcome{Reason: ReasonWaiting, Message: fmt.Sprintf("the API server does not know a field of %s: its CustomResourceDefinition, or the cluster, is older than this operator expects: upgrade it: %s", key, err), After: skewRetry, Cause: err}
	case errors.IsConflict(err):
		return &Outcome{Reason: ReasonWaiting, Message: fmt.Sprintf("another client changed %s at the same time: the operator tries again", key), After: raceRetry}
	}
	return fmt.Errorf("applying %s: %w", key, err)
}
