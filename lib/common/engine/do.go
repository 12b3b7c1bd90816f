package engine

import (
	"context"
	"time"
)

// outdated is recorded in the place of the inputs of a stage whose call outside was
// made for others since.
const outdated = "outdated"

// outside runs the stage's Do, unless Do has succeeded for the same inputs and Every
// has not passed since. If Do fails, the last observation for the same inputs stays.
func (p *pass) outside(ctx context.Context, s step, inputs string) error {
	if s.do == nil {
		return nil
	}
	var every time.Duration
	if s.every != nil {
		every = s.every()
	}
	last, known := p.memory.effect(p.request, s.condition)
	switch {
	case known && last.inputs != inputs:
		last, known = effect{inputs: inputs}, false
	case !known && p.doneFor(s, inputs): // by an earlier process
		last, known = effect{inputs: inputs, observed: completedStage(p.before, s.condition).Observed}, every == 0
	case !known:
		last = effect{inputs: inputs}
	}
	p.in.observed[s.condition] = last.observed
	if left := last.rests(); left > 0 {
		return &outcome{Reason: last.failed.Reason, Message: last.failed.Message, After: left}
	}
	due := every > 0 && time.Since(last.at) >= every
	if known && last.failed == nil && !due {
		p.wakeAfter(every - time.Since(last.at))
		return nil
	}
	p.wakeAfter(every)
	return p.call(ctx, s, last)
}

// call Do, and remember how it went.
func (p *pass) call(ctx context.Context, s step, last effect) error {
	if record := completedStage(p.cr.Common(), s.condition); record != nil && !p.doneFor(s, last.inputs) {
		record.Inputs = outdated // also for the next process, if this one ends in the middle
	}
	limited, cancel := context.WithTimeout(ctx, DoTimeout)
	defer cancel()
	observed, err := s.do(limited, p.in)
	last.at = time.Now()
	if err != nil {
		last.failed, last.failures = outcomeOf(err), last.failures+1
		p.memory.setEffect(p.request, s.condition, last)
		return err
	}
	p.memory.setEffect(p.request, s.condition, effect{inputs: last.inputs, observed: observed, at: last.at})
	p.in.observed[s.condition] = observed
	return nil
}
