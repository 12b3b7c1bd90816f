package engine

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
)

// hold is the pass over a paused object. It writes the status, and spec.paused of the children of
// Asterism's kinds, and nothing else. Nothing is checked, so that every condition is Unknown, except
// Available: an alert depends on it.
func (p *passOf[T]) hold(ctx context.Context, stages []string) {
	for _, stage := range stages {
		p.set(stage, metav1.ConditionUnknown, ReasonPaused, "the object is paused")
	}
	p.noteUnready(p.handDown(ctx, true))
	p.setAvailable(ctx)
	if p.firstUnready == nil {
		p.set(commonv1.ConditionReady, metav1.ConditionUnknown, ReasonPaused, p.pauseMessage())
	} else { // an object below goes on
		p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.firstUnready.Reason, p.firstUnready.Message)
	}
	p.keepConditions(append(slices.Clone(stages), commonv1.ConditionAvailable))
}

// handDown sets spec.paused of the children, or gives the field up.
func (p *pass) handDown(ctx context.Context, paused bool) (err error) {
	defer p.guard(ctx, "the pause of children", &err)
	return p.children.Pause(ctx, paused)
}

// pauseMessage names the object whose spec.paused holds this one.
func (p *pass) pauseMessage() string {
	const message = "nothing is changed or checked until spec.paused is removed"
	if owner := metav1.GetControllerOf(p.cr); owner != nil && apply.PausedByOwner(p.cr) {
		return fmt.Sprintf("%s from %s %s", message, owner.Kind, owner.Name)
	}
	return message
}
