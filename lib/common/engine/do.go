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
func (p *passOf[T]) doIfDue(ctx context.Context, s Stage[T], inputsHash string) error {
	if s.Do == nil {
		return nil
	}
	var every time.Duration
	if s.Every != nil {
		every = s.Every(p.cr)
	}
	last, known := p.memory.lastDos[s.Condition]
	switch {
	case known && last.inputsHash != inputsHash:
		last, known = lastDo{inputsHash: inputsHash}, false
	case !known && p.callCompletedBefore(s.Condition, inputsHash): // by an earlier process
		last, known = lastDo{inputsHash: inputsHash, observed: recordOf(p.before, s.Condition).Observed}, every == 0 && p.isUnchanged(s.Condition)
	case !known:
		last = lastDo{inputsHash: inputsHash}
	}
	p.in.observed[s.Condition] = last.observed
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
		return p.waitForTurn(s.Condition, last, known)
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
func (p *pass) waitForTurn(stage string, last lastDo, known bool) error {
	p.wakeAfter(slotRetry)
	before := p.lastOf(stage)
	served := stage == commonv1.ConditionAvailable && before != nil && before.Status == metav1.ConditionTrue
	switch {
	case last.failed != nil:
		return &outcome{Reason: last.failed.Reason, Message: last.failed.Message, Stalled: last.failed.Stalled}
	case known, served, p.callCompletedBefore(stage, last.inputsHash):
		return nil
	}
	return Wait("other objects of this namespace are waiting for their servers: this object waits for its turn")
}

// callDo calls Do and remembers its result.
func (p *passOf[T]) callDo(ctx context.Context, s Stage[T], last lastDo) error {
	if record := recordOf(p.cr.Common(), s.Condition); record != nil && !p.callCompletedBefore(s.Condition, last.inputsHash) {
		record.Inputs = outdated // so that the next process calls Do again
	}
	limited, cancel := context.WithTimeout(ctx, DoTimeout)
	defer cancel()
	began := time.Now()
	observed, err := p.guardedDo(limited, s)
	last.at = time.Now()
	doDuration.WithLabelValues(p.kind.Kind, s.Condition).Observe(last.at.Sub(began).Seconds())
	if err != nil {
		switch {
		case last.at.Sub(began) < slowCall:
			last.slowSince = time.Time{}
		case last.slowSince.IsZero():
			last.slowSince = last.at
		}
		last.failed, last.failures = outcomeOf(err), last.failures+1
		p.memory.lastDos[s.Condition] = last
		return err
	}
	p.memory.lastDos[s.Condition] = lastDo{inputsHash: last.inputsHash, observed: observed, at: last.at, repeat: last.repeat}
	p.in.observed[s.Condition] = observed
	if record := recordOf(p.cr.Common(), s.Condition); record != nil && p.callCompletedBefore(s.Condition, last.inputsHash) {
		record.Observed = observed // the next process must not go back to what was observed when the stage was last complete
	}
	return nil
}

// guardedDo calls Do. A panic is its failure, so that it backs off like any other.
func (p *passOf[T]) guardedDo(ctx context.Context, s Stage[T]) (observed Observed, err error) {
	defer p.guard(ctx, "stage "+s.Condition, &err)
	return s.Do(ctx, p.cr, p.in)
}
