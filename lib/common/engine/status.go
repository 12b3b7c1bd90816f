package engine

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// maxConditionMessage bounds a condition's message, in bytes; the API allows 32768.
const maxConditionMessage = 4096

// setOutcome sets the condition of a stage; nil is ready.
func (p *pass) setOutcome(condition string, result *outcome) {
	if result == nil {
		p.set(condition, metav1.ConditionTrue, ReasonComplete, "")
		return
	}
	p.set(condition, metav1.ConditionFalse, result.Reason, result.Message)
}

func (p *pass) set(condition string, status metav1.ConditionStatus, reason, message string) {
	message = p.in.masks.hide(message)
	if len(message) > maxConditionMessage {
		message = strings.ToValidUTF8(message[:maxConditionMessage], "") + "…"
	}
	meta.SetStatusCondition(&p.cr.Common().Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: p.cr.GetGeneration(),
	})
}

// judgeAvailable reports whether users are served. Ready does not depend on it.
func (p *pass) judgeAvailable(ctx context.Context, s step) {
	result := p.guard(ctx, commonv1.ConditionAvailable, func() error {
		inputs, err := p.gatherFor(ctx, s)
		if err != nil || s.do == nil {
			return err
		}
		return p.outside(ctx, s, inputs)
	})
	p.setOutcome(commonv1.ConditionAvailable, result)
	if result != nil {
		p.wakeAfter(result.After)
		if result.Retry && p.failure == nil {
			p.failure = result
		}
	}
}

// conclude derives Ready and Stalled, and drops conditions that no stage has.
func (p *pass) conclude(steps []step) {
	known := []string{}
	for _, s := range steps {
		known = append(known, s.condition)
	}
	status := p.cr.Common()
	status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return !slices.Contains(known, c.Stage) })
	known = append(known, commonv1.ConditionAvailable)
	if p.first == nil {
		p.set(commonv1.ConditionReady, metav1.ConditionTrue, "Ready", "")
	} else {
		p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.first.Reason, p.first.Message)
		if p.first.Stalled {
			known = append(known, commonv1.ConditionStalled)
			p.set(commonv1.ConditionStalled, metav1.ConditionTrue, p.first.Reason, p.first.Message)
		}
	}
	status.Conditions = inOrder(status.Conditions, append(known, commonv1.ConditionReady))
	status.ObservedGeneration = p.cr.GetGeneration()
}

// inOrder are the conditions that are known, as the walk goes; the summary comes
// last.
func inOrder(conditions []metav1.Condition, known []string) []metav1.Condition {
	var sorted []metav1.Condition
	for _, name := range known {
		if found := meta.FindStatusCondition(conditions, name); found != nil {
			sorted = append(sorted, *found)
		}
	}
	return sorted
}

// completion is what a stage was complete for, and with which children.
type completion struct {
	inputs   string
	children []string
}

// complete records it. A stage that does nothing and has made nothing has
// nothing that could become incomplete, and no record.
func (p *pass) complete(s step, now completion) {
	status := p.cr.Common()
	if s.do == nil && len(now.children) == 0 {
		status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return c.Stage == s.condition })
		return
	}
	p.record(commonv1.CompletedStage{Stage: s.condition, Inputs: now.inputs, Children: now.children, Observed: p.in.observed[s.condition]})
}

func (p *pass) record(completed commonv1.CompletedStage) {
	status := p.cr.Common()
	if existing := completedStage(status, completed.Stage); existing != nil {
		*existing = completed
		return
	}
	status.Completed = append(status.Completed, completed)
}

func completedStage(status *commonv1.Status, stage string) *commonv1.CompletedStage {
	for i := range status.Completed {
		if status.Completed[i].Stage == stage {
			return &status.Completed[i]
		}
	}
	return nil
}

// completedFor says whether the stage was complete for just these inputs and
// children.
func (p *pass) completedFor(stage, inputs string) bool {
	completed := completedStage(p.before, stage)
	return completed != nil && completed.Inputs == inputs
}

// doneFor says whether a stage with a Do was complete for these inputs.
func (p *pass) doneFor(s step, inputs string) bool {
	completed := completedStage(p.before, s.condition)
	return completed != nil && strings.HasPrefix(completed.Inputs, inputs+"-")
}
