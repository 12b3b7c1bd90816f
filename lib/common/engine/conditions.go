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
		p.set(condition, metav1.ConditionTrue, ReasonComplete, p.remarks[condition])
		return
	}
	p.set(condition, metav1.ConditionFalse, result.Reason, result.Message)
}

func (p *pass) set(condition string, status metav1.ConditionStatus, reason, message string) {
	message = p.hide(message)
	if len(message) > maxConditionMessage {
		Dropped(BoundConditionMessage)
		message = strings.ToValidUTF8(message[:maxConditionMessage], "") + "…"
	}
	meta.SetStatusCondition(&p.cr.Common().Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: p.cr.GetGeneration(),
	})
}

// setAvailable sets the condition Available: whether users are served. Ready does not
// depend on it.
func (p *passOf[T]) setAvailable(ctx context.Context) {
	if p.service.Available == nil {
		return
	}
	s := *p.service.Available
	s.Condition = commonv1.ConditionAvailable
	result := outcomeOf(p.askAvailable(ctx, s))
	p.setOutcome(commonv1.ConditionAvailable, result)
	if result != nil {
		p.planRetry(result)
	}
}

func (p *passOf[T]) askAvailable(ctx context.Context, s Stage[T]) (err error) {
	defer p.guard(ctx, s.Condition, &err)
	inputsHash, err := p.gatherFor(ctx, s)
	if err != nil {
		return err
	}
	return p.doIfDue(ctx, s, inputsHash)
}

// conclude sets Ready and Stalled, and removes conditions and records without a stage.
func (p *pass) conclude(stages []string) {
	p.gathered = true
	for _, stage := range stages {
		_, gathered := p.done[stage]
		p.gathered = p.gathered && gathered
	}
	status := p.cr.Common()
	status.Completed = slices.DeleteFunc(status.Completed, func(c commonv1.CompletedStage) bool { return !slices.Contains(stages, c.Stage) })
	known := append(slices.Clone(stages), commonv1.ConditionAvailable)
	if p.firstUnready == nil {
		p.set(commonv1.ConditionReady, metav1.ConditionTrue, "Ready", "")
	} else {
		p.set(commonv1.ConditionReady, metav1.ConditionFalse, p.firstUnready.Reason, p.firstUnready.Message)
		if p.firstUnready.Stalled {
			known = append(known, commonv1.ConditionStalled)
			p.set(commonv1.ConditionStalled, metav1.ConditionTrue, p.firstUnready.Reason, p.firstUnready.Message)
		}
	}
	p.keepConditions(known)
}

// keepConditions removes all conditions except Ready and those that are known.
func (p *pass) keepConditions(known []string) {
	status := p.cr.Common()
	status.Conditions = inOrder(status.Conditions, append(known, commonv1.ConditionReady))
	status.ObservedGeneration = p.cr.GetGeneration()
}

// inOrder returns the conditions whose types are known, in the order of known.
func inOrder(conditions []metav1.Condition, known []string) []metav1.Condition {
	var sorted []metav1.Condition
	for _, name := range known {
		if found := meta.FindStatusCondition(conditions, name); found != nil {
			sorted = append(sorted, *found)
		}
	}
	return sorted
}
