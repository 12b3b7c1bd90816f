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

// updateUnreached sets the conditions of the stages that the walk did not reach. A
// condition of an older generation becomes Unknown. A condition of this generation is set
// by the state of its stage's children, or to Unknown if this state is not sufficient or
// the stage has no children. If a child no longer exists, the conditions of its stage and of all
// later stages become Unknown.
func (p *pass) updateUnreached(ctx context.Context, stages []string) (err error) {
	defer p.guard(ctx, "the conditions of stages that were not reached", &err)
	unreached := slices.DeleteFunc(slices.Clone(stages), func(stage string) bool { return p.reached[stage] })
	if len(unreached) == 0 {
		return nil
	}
	children, err := p.readChildren(ctx)
	gone := ""
	for _, stage := range unreached {
		last := meta.FindStatusCondition(p.before.Conditions, stage)
		if !p.isCurrent(last) {
			p.setNotReached(stage)
			continue
		}
		if err != nil {
			continue // the condition stays, because the children could not be read
		}
		if gone == "" {
			gone = p.missingOf(stage, children)
		}
		record, own := recordOf(p.before, stage), childrenOf(stage, children)
		if gone == "" && (record == nil || len(record.Children) == 0) && len(own) == 0 {
			p.setNotReached(stage) // nothing shows whether it still holds
			continue
		}
		if gone != "" {
			p.set(stage, metav1.ConditionUnknown, reasonGone, gone+" is gone, and an earlier stage is not done")
			continue
		}
		p.setByChildren(stage, *last, own)
	}
	return err
}

func (p *pass) isCurrent(last *metav1.Condition) bool {
	return last != nil && last.ObservedGeneration == p.cr.GetGeneration() &&
		(last.Status != metav1.ConditionUnknown || last.Reason == reasonGone)
}

func (p *pass) setNotReached(stage string) {
	p.set(stage, metav1.ConditionUnknown, ReasonNotReached, "an earlier stage is not done")
}

// missingOf returns the title of a child that the stage had when it was complete, and that
// no longer exists; "" for none.
func (p *pass) missingOf(stage string, children map[string]client.Object) string {
	record := recordOf(p.before, stage)
	if record == nil {
		return ""
	}
	for _, title := range record.Children {
		if children[title] == nil {
			return title
		}
	}
	return ""
}

// setByChildren sets a condition that may be out of date by the state of the stage's
// children. The condition becomes True only if the stage was complete for this generation.
func (p *pass) setByChildren(stage string, last metav1.Condition, children []client.Object) {
	if last.Status == metav1.ConditionFalse && last.Reason != ReasonProgressing {
		p.setNotReached(stage) // the children do not show whether the cause still exists
		return
	}
	for _, child := range children {
		if err := apply.Incomplete(child); err != nil {
			p.set(stage, metav1.ConditionFalse, ReasonProgressing, fmt.Sprintf("%s; an earlier stage is not done", err))
			return
		}
	}
	record := recordOf(p.before, stage)
	recovered := last.Reason == ReasonProgressing && record != nil && record.Generation == p.cr.GetGeneration()
	if last.Status != metav1.ConditionTrue && !recovered {
		p.setNotReached(stage)
		return
	}
	remark := ""
	if last.Status == metav1.ConditionTrue {
		remark = last.Message
	}
	p.set(stage, metav1.ConditionTrue, ReasonComplete, remark)
}

// childrenOf returns the children of a stage, in the order of their titles.
func childrenOf(stage string, all map[string]client.Object) []client.Object {
	var own []client.Object
	for _, title := range slices.Sorted(maps.Keys(all)) {
		if apply.StageOf(all[title]) == stage {
			own = append(own, all[title])
		}
	}
	return own
}
