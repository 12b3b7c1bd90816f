package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/apply"
)

// judgeUnreached sets the conditions of the stages that the walk did not reach. A
// condition of an older generation becomes Unknown. A condition of this generation
// is judged by the children of its stage. If a child is gone, the condition of its
// stage, and those of all stages behind, become Unknown.
func (p *pass) judgeUnreached(ctx context.Context, steps []step) {
	unreached := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return p.reached[s.condition] })
	if len(unreached) == 0 {
		return
	}
	children, err := p.childrenByTitle(ctx)
	if err != nil && p.failure == nil {
		p.failure = err
	}
	gone := ""
	for _, s := range unreached {
		last := meta.FindStatusCondition(p.before.Conditions, s.condition)
		if last == nil || last.ObservedGeneration != p.cr.GetGeneration() || last.Status == metav1.ConditionUnknown && last.Reason != ReasonGone {
			p.set(s.condition, metav1.ConditionUnknown, ReasonNotReached, "an earlier stage is not done")
			continue
		}
		if err != nil {
			continue // the condition stays, since the children are not known
		}
		if gone == "" {
			gone = p.missingOf(s.condition, children)
		}
		if gone != "" {
			p.set(s.condition, metav1.ConditionUnknown, ReasonGone, gone+" is gone, and an earlier stage is not done")
			continue
		}
		p.judgeChildren(s.condition, *last, children)
	}
}

// missingOf names a child that the stage had when it was complete, and that is
// gone; "" for none.
func (p *pass) missingOf(stage string, children map[string]client.Object) string {
	completed := completedStage(p.before, stage)
	if completed == nil {
		return ""
	}
	for _, title := range completed.Children {
		if children[title] == nil {
			return title
		}
	}
	return ""
}

// judgeChildren of a stage whose condition may be out of date. Only a stage that was
// complete for this generation can be so again.
func (p *pass) judgeChildren(stage string, last metav1.Condition, children map[string]client.Object) {
	for _, title := range slices.Sorted(maps.Keys(children)) {
		child := children[title]
		if apply.StageOf(child) != stage || last.Status == metav1.ConditionFalse && last.Reason != ReasonProgressing {
			continue
		}
		if err := apply.Complete(child); err != nil {
			p.set(stage, metav1.ConditionFalse, ReasonProgressing, fmt.Sprintf("%s; an earlier stage is not done", err))
			return
		}
	}
	completed := completedStage(p.before, stage)
	if last.Status != metav1.ConditionTrue && (completed == nil || completed.Generation != p.cr.GetGeneration() || last.Reason != ReasonProgressing) {
		p.set(stage, metav1.ConditionUnknown, ReasonNotReached, "an earlier stage is not done")
		return
	}
	p.set(stage, metav1.ConditionTrue, ReasonComplete, "")
}
