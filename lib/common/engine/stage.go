package engine

import (
	"context"

	"asterism.dev/lib/common/engine/internal/apply"
)

// runStage runs one stage: needs, Do, children, report. It returns nil if the stage is
// ready. A stage that ends early is not done.
func (p *pass) runStage(ctx context.Context, s boundStage) error {
	inputsHash, err := p.gatherFor(ctx, s)
	if err != nil {
		return err
	}
	failed := p.doIfDue(ctx, s, inputsHash)
	if failed != nil && (outcomeOf(failed).Stalled || !p.callWasComplete(s, inputsHash)) {
		return failed
	}
	children, err := p.buildChildren(ctx, s)
	if err != nil {
		return err
	}
	record := p.newRecord(s, inputsHash, children)
	wasComplete := p.wasComplete(s.condition, record.Inputs)
	incomplete := p.applyChildren(ctx, s, children, wasComplete, &record)
	if failed != nil { // a call that has worked for these inputs before
		incomplete = failed
	}
	if s.report != nil {
		s.report(p.in)
	}
	if incomplete == nil {
		p.writeRecord(record)
	}
	p.done[s.condition] = incomplete == nil || wasComplete && letsWalkGoOn(outcomeOf(incomplete))
	return incomplete
}

// letsWalkGoOn says whether the walk goes on from a stage that was complete before and is
// not now: a rollout holds nothing up, and a conflict does.
func letsWalkGoOn(incomplete *outcome) bool {
	return !incomplete.Stalled && !incomplete.IsConflict()
}

// gatherFor a stage returns the hash of its inputs. The inputs of a Do
// include the spec, and the UID, because an object may be deleted and created again
// unseen.
func (p *pass) gatherFor(ctx context.Context, s boundStage) (string, error) {
	var inputsHash string
	if s.needs != nil {
		var err error
		if inputsHash, err = p.gather(ctx, s.needs()); err != nil {
			return "", err
		}
	}
	if s.do == nil {
		return inputsHash, nil
	}
	body, err := apply.Body(p.cr)
	return apply.Hash([]any{inputsHash, body["spec"], p.cr.GetUID()}), err
}
