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

// reasonLeftBehind is the reason of an event that lists the objects that a user must delete
// manually.
const reasonLeftBehind = "LeftBehind"

// tearDown runs the stages of the teardown, and removes the finalizer when all of them are
// ready. gone is true if nothing is left to report: the finalizer is removed.
func (p *passOf[T]) tearDown(ctx context.Context) (gone bool, err error) {
	for _, s := range p.service.Teardown {
		if p.completedBefore(s.Condition, abandonedStage) {
			p.done[s.Condition] = true
			continue
		}
		err := p.runStage(ctx, s)
		var end *abandoned
		if errors.As(err, &end) {
			err = p.abandon(ctx, s.Condition, p.hide(end.remains))
		}
		if err != nil {
			p.deleting(s.Condition+": ", err)
			return false, nil
		}
	}
	err = client.IgnoreNotFound(p.patchFinalizers(ctx, func() { controllerutil.RemoveFinalizer(p.cr, p.finalizer()) }))
	if err == nil || apierrors.IsConflict(err) { // after a conflict, the watch is behind
		return err == nil, err
	}
	p.deleting("", err)
	return false, nil
}

// abandon ends a stage although objects remain, when the events that list them are written.
func (p *pass) abandon(ctx context.Context, stage, remains string) (err error) {
	defer p.guard(ctx, "stage "+stage, &err)
	if p.pod != nil { // the API server refuses events in a namespace that is being deleted
		switch err := p.client().Create(ctx, p.leftBehind(stage, remains)); {
		case apierrors.IsForbidden(err): // for ever: the log has the message
			log.FromContext(ctx).Error(err, "writing the event LeftBehind of the operator's pod", "stage", stage)
		case err != nil && !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("writing the event LeftBehind of the operator's pod: %w", err)
		}
	}
	log.FromContext(ctx).Info("a stage of the teardown is abandoned", "stage", stage, "remains", remains)
	p.recorder.Event(p.cr, corev1.EventTypeWarning, reasonLeftBehind, bounded(stage+": "+remains))
	p.writeRecord(commonv1.CompletedStage{Stage: stage, Inputs: abandonedStage})
	p.done[stage] = true
	return nil
}

// leftBehind returns an event about the operator's pod. It is written without the recorder,
// which would merge it with other events, and lose it when the operator ends. Its name is
// the same when a pass is repeated.
func (p *pass) leftBehind(stage, remains string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.pod.Namespace, Name: strings.ToLower(fmt.Sprintf("%s.%s.%s", p.pod.Name, p.cr.GetUID(), stage))},
		InvolvedObject: *p.pod,
		Type:           corev1.EventTypeWarning,
		Reason:         reasonLeftBehind,
		Message:        bounded(fmt.Sprintf("%s %s: %s: %s", p.kind.Kind, strings.TrimPrefix(p.request.String(), "/"), stage, remains)),
		Source:         corev1.EventSource{Component: p.settings.Name},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// deleting sets the conditions of an object whose deletion waits. The message of Ready begins with
// a text.
func (p *pass) deleting(begin string, waits error) {
	result := outcomeOf(waits)
	p.gathered = true // the certificates of the stages are not read any more
	p.firstUnready = &outcome{Reason: ReasonDeleting, Message: begin + result.Message}
	if result.Reason != ReasonProgressing && result.Reason != ReasonWaiting {
		p.firstUnready.Reason = result.Reason
	}
	p.planRetry(result)
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

// finalizer returns the finalizer of the kind, for example example.org/rack.
func (p *pass) finalizer() string { return p.kind.Group + "/" + p.settings.Name }

// addFinalizer adds the finalizer before the first effect that the teardown must undo.
func (p *pass) addFinalizer(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.cr, p.finalizer()) {
		return nil
	}
	return p.patchFinalizers(ctx, func() { controllerutil.AddFinalizer(p.cr, p.finalizer()) })
}

// patchFinalizers sends the resourceVersion, because a merge patch replaces the whole list
// of finalizers.
func (p *pass) patchFinalizers(ctx context.Context, change func()) error {
	base := p.cr.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	change()
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.client().Patch(ctx, p.cr, patch, client.FieldOwner(p.settings.Name+"-finalizer")); err != nil {
		p.cr.SetFinalizers(base.GetFinalizers()) // a status is written only if the object has changed
		return fmt.Errorf("patching the finalizers of %s: %w", p.self(), err)
	}
	p.stored = p.cr.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy has the same type
	if p.stored.GetDeletionTimestamp() != nil && len(p.stored.GetFinalizers()) == 0 {
		p.view.NoteDelete(p.self(), p.stored)
	} else {
		p.view.NoteWrite(p.self(), p.stored)
	}
	return nil
}
