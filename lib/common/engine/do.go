package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
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
	last, known := p.memory.lastDos[s.condition]
	switch {
	case known && last.inputsHash != inputsHash:
		last, known = lastDo{inputsHash: inputsHash}, false
	case !known && p.callCompletedBefore(s, inputsHash): // by an earlier process
		last, known = lastDo{inputsHash: inputsHash, observed: recordOf(p.before, s.condition).Observed}, every == 0 && p.isUnchanged(s.condition)
	case !known:
		last = lastDo{inputsHash: inputsHash}
	}
	p.in.observed[s.condition] = last.observed
	if left := last.backOff(); left > 0 {
		return &outcome{Reason: last.failed.Reason, Message: last.failed.Message, Stalled: last.failed.Stalled, After: left}
	}
	last.repeat = min(last.repeat, every+time.Duration(float64(every)*repeatJitter)) // Every may have become shorter
	due := every > 0 && time.Since(last.at) >= last.repeat
	if known && last.failed == nil && !due {
		p.wakeAfter(last.repeat - time.Since(last.at))
		return nil
	}
	if !p.slots.take(p.request) {
		return p.waitForTurn(s, last, known)
	}
	defer func() { p.cluster.Enqueue(p.slots.release(p.request.Namespace)...) }()
	last.repeat = jitter(every)
	p.wakeAfter(last.repeat)
	return p.callDo(ctx, s, last)
}

// jitter returns a random time between Every and a tenth more, so that objects that call a
// server at the same time, for example after a restart, do not again.
func jitter(every time.Duration) time.Duration { return wait.Jitter(every, repeatJitter) }

// waitForTurn returns the outcome of a Do that is due and has no slot: that of the last call with
// these inputs, if one is known.
func (p *pass) waitForTurn(s boundStage, last lastDo, known bool) error {
	p.wakeAfter(slotRetry)
	before := p.lastOf(s)
	served := s.condition == commonv1.ConditionAvailable && before != nil && before.Status == metav1.ConditionTrue
	switch {
	case last.failed != nil:
		return &outcome{Reason: last.failed.Reason, Message: last.failed.Message, Stalled: last.failed.Stalled}
	case known, served, p.callCompletedBefore(s, last.inputsHash):
		return nil
	}
	return Wait("other objects of this namespace are waiting for their servers: this object waits for its turn")
}

// callDo calls Do and remembers its result.
func (p *pass) callDo(ctx context.Context, s boundStage, last lastDo) error {
	if record := recordOf(p.cr.Common(), s.condition); record != nil && !p.callCompletedBefore(s, last.inputsHash) {
		record.Inputs = outdated // so that the next process calls Do again
	}
	limited, cancel := context.WithTimeout(ctx, DoTimeout)
	defer cancel()
	began := time.Now()
	observed, err := s.do(limited, p.in)
	last.at = time.Now()
	doDuration.WithLabelValues(p.kind.Kind, s.condition).Observe(last.at.Sub(began).Seconds())
	if err != nil {
		switch {
		case last.at.Sub(began) < slowCall:
			last.slowSince = time.Time{}
		case last.slowSince.IsZero():
			last.slowSince = last.at
		}
		last.failed, last.failures = outcomeOf(err), last.failures+1
		p.memory.lastDos[s.condition] = last
		return err
	}
	p.memory.lastDos[s.condition] = lastDo{inputsHash: last.inputsHash, observed: observed, at: last.at, repeat: last.repeat}
	p.in.observed[s.condition] = observed
	return nil
}
