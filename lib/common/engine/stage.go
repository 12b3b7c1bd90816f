package engine

import (
	"context"

	"asterism.dev/lib/common/engine/internal/apply"
)

// runStage runs one stage: Needs, Do, Build, the writes of its children, Judge and Report. It returns nil if the stage is
// ready. A stage that ends before Report is not done.
func (p *passOf[T]) runStage(ctx context.Context, s Stage[T]) (err error) {
	defer p.guard(ctx, "stage "+s.Condition, &err)
	inputsHash, err := p.gatherFor(ctx, s)
	if err != nil {
		return err
	}
	failed := p.doIfDue(ctx, s, inputsHash)
	if failed != nil && (outcomeOf(failed).Stalled || !p.callCompletedBefore(s.Condition, inputsHash)) {
		return failed
	}
	children, err := p.buildChildren(ctx, s)
	if err != nil {
		return err
	}
	record := p.newRecord(s, inputsHash, children)
	completedBefore := p.completedBefore(s.Condition, record.Inputs)
	incomplete := p.applyChildren(ctx, s, children, completedBefore, &record)
	if failed != nil { // its children were applied, because Do has succeeded for these inputs before
		incomplete = p.outweigh(incomplete, failed)
	}
	if incomplete == nil && s.Judge != nil {
		p.remarks[s.Condition], incomplete = s.Judge(p.cr, p.in)
	}
	if s.Report != nil {
		s.Report(p.cr, p.in)
	}
	if incomplete == nil {
		p.writeRecord(record)
	}
	p.done[s.Condition] = incomplete == nil || completedBefore && mayContinueAfter(outcomeOf(incomplete))
	return incomplete
}

// outweigh returns the failure of Do, unless a child has a problem with which the walk must not go on.
func (p *pass) outweigh(incomplete, failed error) error {
	if incomplete != nil && !mayContinueAfter(outcomeOf(incomplete)) {
		incomplete, failed = failed, incomplete
	}
	p.planOther(incomplete)
	return failed
}

// mayContinueAfter tells whether the walk continues after a stage that was complete before
// and is not complete now: it continues during a rollout, and stops at a conflict.
func mayContinueAfter(incomplete *outcome) bool {
	return !incomplete.Stalled && !incomplete.IsConflict()
}

// gatherFor returns the hash of a stage's inputs. The inputs of a Do include the spec and
// the UID, because the operator may not see that an object is deleted and recreated.
func (p *passOf[T]) gatherFor(ctx context.Context, s Stage[T]) (string, error) {
	var inputsHash string
	if s.Needs != nil {
		var err error
		if inputsHash, err = p.gather(ctx, s.Needs(p.cr)); err != nil {
			return "", err
		}
	}
	if s.Do == nil {
		return inputsHash, nil
	}
	body, err := apply.Body(p.cr)
	return p.in.Hash(inputsHash, body["spec"], p.cr.GetUID()), err
}
