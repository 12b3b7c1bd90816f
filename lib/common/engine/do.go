package engine

import (
	"context"
	"time"
)

// doIfDue calls the stage's Do, unless Do has succeeded for the same inputs and Every has
// not passed since, or Do backs off after a failure. If Do fails, the facts that it has
// observed for the same inputs before stay.
func (p *pass) doIfDue(ctx context.Context, s boundStage, inputsHash string) error {
	if s.do == nil {
		return nil
	}
	var every time.Duration
	if s.every != nil {
		every = s.every()
	}
	last, known := p.memory.lastDo(p.request, s.condition)
	switch {
	case known && last.inputsHash != inputsHash:
		last, known = lastDo{inputsHash: inputsHash}, false
	case !known && p.callWasComplete(s, inputsHash): // by an earlier process
		last, known = lastDo{inputsHash: inputsHash, observed: recordOf(p.before, s.condition).Observed}, every == 0
	case !known:
		last = lastDo{inputsHash: inputsHash}
	}
	p.in.observed[s.condition] = last.observed
	if left := last.backOff(); left > 0 {
		return &outcome{Reason: last.failed.Reason, Message: last.failed.Message, After: left}
	}
	due := every > 0 && time.Since(last.at) >= every
	if known && last.failed == nil && !due {
		p.wakeAfter(every - time.Since(last.at))
		return nil
	}
	p.wakeAfter(every)
	return p.callDo(ctx, s, last)
}

// callDo calls Do and remembers its result.
func (p *pass) callDo(ctx context.Context, s boundStage, last lastDo) error {
	if record := recordOf(p.cr.Common(), s.condition); record != nil && !p.callWasComplete(s, last.inputsHash) {
		record.Inputs = outdated // so that the next process calls Do again if this process ends now
	}
	limited, cancel := context.WithTimeout(ctx, DoTimeout)
	defer cancel()
	observed, err := s.do(limited, p.in)
	last.at = time.Now()
	if err != nil {
		last.failed, last.failures = outcomeOf(err), last.failures+1
		p.memory.setLastDo(p.request, s.condition, last)
		return err
	}
	p.memory.setLastDo(p.request, s.condition, lastDo{inputsHash: last.inputsHash, observed: observed, at: last.at})
	p.in.observed[s.condition] = observed
	return nil
}
