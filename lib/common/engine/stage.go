package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
)

// stage runs one stage: needs, the call outside, children, report. nil: it is
// ready. A stage that ends early is not done, so that the walk may end there.
func (p *pass) stage(ctx context.Context, s step) error {
	inputs, err := p.gatherFor(ctx, s)
	if err != nil {
		return err
	}
	failed := p.outside(ctx, s, inputs)
	if failed != nil && (outcomeOf(failed).Stalled || !p.doneFor(s, inputs)) {
		return failed
	}
	children, err := p.buildChildren(ctx, s)
	if err != nil {
		return err
	}
	completed := p.completion(s, inputs, children)
	settled := p.completedFor(s.condition, completed.Inputs)
	incomplete := p.applyChildren(ctx, s, children, settled, &completed)
	if failed != nil { // a call that has worked for these inputs before
		incomplete = failed
	}
	if s.report != nil {
		s.report(p.in)
	}
	if incomplete == nil {
		p.record(completed)
	}
	p.done[s.condition] = incomplete == nil || settled && mayGoOn(outcomeOf(incomplete))
	return incomplete
}

// mayGoOn says whether the walk goes on from a stage that was complete before and is
// not now: a rollout holds nothing up, and a conflict does.
func mayGoOn(incomplete *outcome) bool {
	return !incomplete.Stalled && !incomplete.IsConflict()
}

// completion is what is recorded if the stage is complete now.
func (p *pass) completion(s step, inputs string, children apply.Stamped) commonv1.CompletedStage {
	completed := commonv1.CompletedStage{
		Stage: s.condition, Generation: p.cr.GetGeneration(), Observed: p.in.observed[s.condition],
		Inputs: apply.Hash(append([]string{inputs}, children.Hashes()...)),
	}
	switch {
	case s.do != nil:
		completed.Inputs = inputs + "-" + completed.Inputs
	case len(children) == 0, p.cr.GetDeletionTimestamp() != nil:
		completed.Inputs = "" // no child that could become incomplete: there is no record
	}
	return completed
}

// gatherFor a stage returns the hash of its inputs. The inputs of a call outside
// include the spec, and the UID, because an object may be deleted and created again
// unseen.
func (p *pass) gatherFor(ctx context.Context, s step) (string, error) {
	var inputs string
	if s.needs != nil {
		var err error
		if inputs, err = p.gather(ctx, s.needs()); err != nil {
			return "", err
		}
	}
	if s.do == nil {
		return inputs, nil
	}
	body, err := apply.Body(p.cr)
	return apply.Hash([]any{inputs, body["spec"], p.cr.GetUID()}), err
}

func (p *pass) buildChildren(ctx context.Context, s step) (apply.Stamped, error) {
	if s.build == nil {
		return nil, nil
	}
	built, err := s.build(p.in)
	if err != nil {
		return nil, err
	}
	var children []apply.Child
	for _, child := range built {
		children = append(children, unwrap(child))
	}
	return p.children.Stamp(ctx, s.condition, children)
}

// applyChildren brings the children to what the builder wants, makes them inputs of
// later stages, and deletes children that the builder does not list any more.
func (p *pass) applyChildren(ctx context.Context, s step, children apply.Stamped, settled bool, completed *commonv1.CompletedStage) error {
	if s.build == nil {
		return nil
	}
	last := meta.FindStatusCondition(p.before.Conditions, s.condition)
	results, incomplete := p.children.Ensure(ctx, apply.Stage{Name: s.condition, Last: last}, children, settled)
	for _, r := range results {
		completed.Children = append(completed.Children, r.Name)
		p.remember(r)
	}
	p.listed = append(p.listed, children.Keys()...)
	if err := p.children.Prune(ctx, s.condition, p.listed); err != nil && incomplete == nil {
		return err
	}
	return incomplete
}

// remember a child as an input.
func (p *pass) remember(r apply.Result) {
	if r.Object != nil {
		p.in.objects[r.Key] = r.Object
	}
	if r.Data != nil {
		p.addData(r.Key, r.Data)
	}
	if r.Run != "" {
		p.in.results[r.Run] = r.Message
	}
}
