package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// reasonLeftBehind is the reason of an event that lists what somebody has to delete by
// hand.
const reasonLeftBehind = "LeftBehind"

// tearDown walks the stages of the teardown, and removes the finalizer at its
// end: then nothing is left of the object.
func (p *pass) tearDown(ctx context.Context, stages []boundStage) (gone bool, err error) {
	if !controllerutil.ContainsFinalizer(p.cr, p.finalizer()) {
		return true, nil
	}
	for _, s := range stages {
		if p.wasComplete(s.condition, abandonedStage) {
			p.done[s.condition] = true
			continue
		}
		result := p.guard(ctx, s.condition, func() error { return p.runStage(ctx, s) })
		var left *abandoned
		if result != nil && errors.As(result.Cause, &left) {
			p.abandon(ctx, s.condition, p.in.masks.Hide(left.left))
			continue
		}
		if result != nil {
			p.deleting(s.condition, result)
			return false, nil
		}
	}
	err = p.patchFinalizers(ctx, func() { controllerutil.RemoveFinalizer(p.cr, p.finalizer()) })
	return true, client.IgnoreNotFound(err)
}

// abandon a stage that cannot be undone.
func (p *pass) abandon(ctx context.Context, stage, left string) {
	p.writeRecord(commonv1.CompletedStage{Stage: stage, Inputs: abandonedStage})
	log.FromContext(ctx).Info("left behind", "stage", stage, "what", left)
	p.recorder.Event(p.cr, corev1.EventTypeWarning, reasonLeftBehind, bounded(stage+": "+left))
	if p.pod != nil { // a namespace that is being deleted takes no events
		if err := p.client().Create(ctx, p.leftBehind(stage, left)); err != nil && !apierrors.IsAlreadyExists(err) {
			log.FromContext(ctx).Error(err, "writing the event about what is left behind")
		}
	}
	p.done[stage] = true
}

// leftBehind is an event in the operator's own namespace. The recorder would merge it
// with others about the operator's pod, and lose it when the operator ends. Its name is
// the same when a pass is repeated.
func (p *pass) leftBehind(stage, left string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.pod.Namespace, Name: strings.ToLower(fmt.Sprintf("%s.%s.%s", p.pod.Name, p.cr.GetUID(), stage))},
		InvolvedObject: *p.pod,
		Type:           corev1.EventTypeWarning,
		Reason:         reasonLeftBehind,
		Message:        bounded(fmt.Sprintf("%s %s: %s: %s", p.kind.Kind, strings.TrimPrefix(p.request.String(), "/"), stage, left)),
		Source:         corev1.EventSource{Component: p.applier.Name},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// deleting reports the stage that the teardown waits for.
func (p *pass) deleting(stage string, result *outcome) {
	p.firstUnready = &outcome{Reason: ReasonDeleting, Message: stage + ": " + result.Message}
	if result.Reason != ReasonProgressing && result.Reason != ReasonWaiting {
		p.firstUnready.Reason = result.Reason
	}
	p.comeBack(result)
	status := p.cr.Common()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == commonv1.ConditionStalled })
	for _, condition := range slices.Clone(status.Conditions) {
		if condition.Type != commonv1.ConditionReady {
			p.set(condition.Type, metav1.ConditionUnknown, ReasonDeleting, "the object is being deleted")
		}
	}
	p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.firstUnready.Reason, p.firstUnready.Message)
	status.ObservedGeneration = p.cr.GetGeneration()
}

// finalizer of the kind, for example nova.asterism.dev/nova-cell.
func (p *pass) finalizer() string { return p.kind.Group + "/" + p.applier.Name }

// addFinalizer before the first effect that deletion has to undo.
func (p *pass) addFinalizer(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.cr, p.finalizer()) {
		return nil
	}
	return p.patchFinalizers(ctx, func() { controllerutil.AddFinalizer(p.cr, p.finalizer()) })
}

// patchFinalizers guards the list with the resourceVersion, because a merge
// patch replaces it as a whole.
func (p *pass) patchFinalizers(ctx context.Context, change func()) error {
	base := p.cr.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	change()
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.client().Patch(ctx, p.cr, patch, client.FieldOwner(p.applier.Name+"-finalizer")); err != nil {
		return fmt.Errorf("finalizer of %s: %w", p.cr.GetName(), err)
	}
	p.stored = p.cr.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	if p.stored.GetDeletionTimestamp() != nil && len(p.stored.GetFinalizers()) == 0 {
		p.view.NoteDelete(p.self(), p.stored)
	} else {
		p.view.NoteWrite(p.self(), p.stored)
	}
	return nil
}
