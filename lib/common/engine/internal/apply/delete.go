package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/observe"
)

// ensureAbsent deletes a child, and returns nil when the child no longer exists. The watch
// may not show yet that an earlier process has created the child. Therefore, a live read
// verifies the absence, unless the stage was complete for the same children before.
func (c *Children) ensureAbsent(ctx context.Context, want stampedChild, completedBefore bool) error {
	current, err := c.View.Get(ctx, want.key)
	if err == nil && current == nil && !completedBefore {
		current, err = c.View.Live(ctx, want.key)
	}
	if observe.IsNotServed(err) {
		return nil // a kind that is not served has no objects
	}
	if err != nil {
		return err
	}
	if current == nil || !c.IsChild(current) && (want.FormerOwner == "" || observe.OwnerUID(current) != want.FormerOwner) {
		c.Memory.forget(want.key)
		return nil
	}
	policy := propagation(current)
	if want.TearsDown {
		policy = metav1.DeletePropagationBackground
	}
	if err := c.deleteBy(ctx, policy, want.key, current); err != nil {
		return err
	}
	return c.explained(ctx, want.key, current, want.Explain, beingDeleted(want.key, current))
}

// beingDeleted is the outcome for a child that is being deleted. Its message has the
// cause of the delay: for an Asterism kind the message of Ready, otherwise a finalizer.
func beingDeleted(key observe.Key, current client.Object) *Outcome {
	outcome := progressing("%s is being deleted", key)
	if child, ok := current.(asterismObject); ok {
		ready := meta.FindStatusCondition(child.Common().Conditions, commonv1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionFalse && current.GetDeletionTimestamp() != nil && ready.ObservedGeneration == current.GetGeneration() {
			outcome.Message += ": " + ready.Message
			return outcome
		}
	}
	for _, finalizer := range current.GetFinalizers() {
		if finalizer != metav1.FinalizerDeleteDependents {
			outcome.Message += ", waiting for finalizer " + finalizer
			break
		}
	}
	return outcome
}

// delete requests the deletion of the object with this UID, dependents first.
func (c *Children) delete(ctx context.Context, key observe.Key, current client.Object) error {
	return c.deleteBy(ctx, propagation(current), key, current)
}

func (c *Children) deleteBy(ctx context.Context, policy metav1.DeletionPropagation, key observe.Key, current client.Object) error {
	if current.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := current.GetUID()
	err := c.Client.Delete(ctx, current.DeepCopyObject().(client.Object), //nolint:forcetypeassert // a copy has the same type
		client.Preconditions{UID: &uid}, client.PropagationPolicy(policy))
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		return nil // an object with another UID is not this child
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	c.View.NoteDelete(key, current)
	return nil
}

// propagation is foreground for kinds with dependents, so that the dependents are deleted
// first. Other objects need not wait for the garbage collector.
func propagation(obj client.Object) metav1.DeletionPropagation {
	switch obj.(type) {
	case *appsv1.StatefulSet, *appsv1.Deployment, *appsv1.DaemonSet, *batchv1.Job, asterismObject:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// Prune deletes the children of a stage that neither its builder nor the builder of an
// earlier stage lists, except Lingering children.
func (c *Children) Prune(ctx context.Context, stage string, wanted []observe.Key) error {
	return c.deleteWhere(ctx, func(key observe.Key, child client.Object) bool {
		return StageOf(child) == stage && child.GetLabels()[labelLingers] == "" && !slices.Contains(wanted, key)
	})
}

// Sweep deletes unlisted Lingering children, and the children that only an earlier version of the
// operator had: those of other stages than these.
func (c *Children) Sweep(ctx context.Context, stages []string, wanted []observe.Key) error {
	return c.deleteWhere(ctx, func(key observe.Key, child client.Object) bool {
		lingers := child.GetLabels()[labelLingers] != ""
		return (lingers || StageOf(child) != "" && !slices.Contains(stages, StageOf(child))) && !slices.Contains(wanted, key)
	})
}

func (c *Children) deleteWhere(ctx context.Context, applies func(observe.Key, client.Object) bool) error {
	return c.eachWhere(ctx, applies, func(key observe.Key, current client.Object) error {
		c.Memory.forget(key)
		return c.delete(ctx, key, current)
	})
}

// eachWhere calls change for every child of which applies is true. It continues after an error, and
// returns the first one.
func (c *Children) eachWhere(ctx context.Context, applies func(observe.Key, client.Object) bool, change func(observe.Key, client.Object) error) (failed error) {
	all, err := c.All(ctx)
	if err != nil {
		return err
	}
	for _, child := range all {
		key := observe.KeyOf(c.View.KindOf(child), child)
		if !applies(key, child) {
			continue
		}
		current, err := c.View.Get(ctx, key) // may return a newer version
		if err == nil && current != nil && c.IsChild(current) && applies(key, current) {
			err = change(key, current)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}
