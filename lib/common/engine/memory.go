package engine

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Back-off after an error.
const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// memory keeps the effects of each object's stages, and since when its status waits to
// be written. Losing it costs one idempotent repetition.
type memory struct {
	mu      sync.Mutex
	effects map[reconcile.Request]map[string]effect
	waiting map[reconcile.Request]time.Time
}

func newMemory() *memory {
	return &memory{effects: map[reconcile.Request]map[string]effect{}, waiting: map[reconcile.Request]time.Time{}}
}

func (m *memory) setEffect(request reconcile.Request, stage string, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects[request] == nil {
		m.effects[request] = map[string]effect{}
	}
	m.effects[request][stage] = e
}

// waitsNot remembers that the status is written as it is.
func (m *memory) waitsNot(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, request)
}

// waitingSince is when the status began to wait: at the first call since waitsNot.
func (m *memory) waitingSince(request reconcile.Request) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[request].IsZero() {
		m.waiting[request] = time.Now()
	}
	return m.waiting[request]
}

func (m *memory) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.effects, request)
	delete(m.waiting, request)
}

func (m *memory) effect(request reconcile.Request, stage string) (effect, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.effects[request][stage]
	return found, ok
}

// effect is the last call of a Do.
type effect struct {
	inputs   string
	observed Observed // of the last success with these inputs
	at       time.Time
	failed   *outcome // nil: it succeeded
	failures int      // in a row, with these inputs
}

// rests says for how long a Do that failed is not called, although an event has
// woken its object: a server that refuses requests gets no more of them.
func (e effect) rests() time.Duration {
	if e.failed == nil || !e.failed.Retry {
		return 0
	}
	return min(retryMin<<min(e.failures, 10), retryMax) - time.Since(e.at)
}
