package engine

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// outside runs Do unless it has succeeded for the same inputs and Every has
// not passed since. If it fails, what was observed for the same inputs stands.
func (p *pass) outside(ctx context.Context, s step, inputs string) error {
	var every time.Duration
	if s.every != nil {
		every = s.every()
	}
	last, known := p.memory.effect(p.request, s.condition)
	if !known || last.inputs != inputs {
		last, known = effect{inputs: inputs}, false
		if p.doneFor(s, inputs) { // by an earlier process
			last.observed, known = completedStage(p.before, s.condition).Observed, every == 0
		}
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

// effect is the last call of a Do.
type effect struct {
	inputs   string
	observed Observed // of the last success with these inputs
	at       time.Time
	failed   *outcome // nil: it succeeded
	failures int      // in a row, with these inputs
}

// rests says how long a Do that failed is left alone, although an event has
// brought up its object: a server that refuses us is not to be stormed.
func (e effect) rests() time.Duration {
	if e.failed == nil || !e.failed.Retry {
		return 0
	}
	return min(retryMin<<min(e.failures, 10), retryMax) - time.Since(e.at)
}

// memory keeps the effects of each object's stages, and when its status was
// written last. Losing it costs one idempotent repetition.
type memory struct {
	mu      sync.Mutex
	effects map[reconcile.Request]map[string]effect
	written map[reconcile.Request]time.Time
}

func newMemory() *memory {
	return &memory{effects: map[reconcile.Request]map[string]effect{}, written: map[reconcile.Request]time.Time{}}
}

func (m *memory) effect(request reconcile.Request, stage string) (effect, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.effects[request][stage]
	return found, ok
}

func (m *memory) setEffect(request reconcile.Request, stage string, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects[request] == nil {
		m.effects[request] = map[string]effect{}
	}
	m.effects[request][stage] = e
}

// wrote remembers that the status was written now.
func (m *memory) wrote(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written[request] = time.Now()
}

func (m *memory) lastWrite(request reconcile.Request) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written[request]
}

func (m *memory) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.effects, request)
	delete(m.written, request)
}
