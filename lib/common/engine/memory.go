package engine

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory keeps the last Do of each object's stages, and since when its status waits to
// be written. Losing it costs one idempotent repetition.
type memory struct {
	mu        sync.Mutex
	lastDos   map[reconcile.Request]map[string]lastDo
	unwritten map[reconcile.Request]time.Time
}

func newMemory() *memory {
	return &memory{lastDos: map[reconcile.Request]map[string]lastDo{}, unwritten: map[reconcile.Request]time.Time{}}
}

func (m *memory) setLastDo(request reconcile.Request, stage string, last lastDo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lastDos[request] == nil {
		m.lastDos[request] = map[string]lastDo{}
	}
	m.lastDos[request][stage] = last
}

// statusWritten says that no change of the status waits to be written.
func (m *memory) statusWritten(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unwritten, request)
}

// unwrittenSince is when the status began to wait: at the first call since statusWritten.
func (m *memory) unwrittenSince(request reconcile.Request) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unwritten[request].IsZero() {
		m.unwritten[request] = time.Now()
	}
	return m.unwritten[request]
}

func (m *memory) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lastDos, request)
	delete(m.unwritten, request)
}

func (m *memory) lastDo(request reconcile.Request, stage string) (lastDo, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.lastDos[request][stage]
	return found, ok
}

// lastDo is the last call of a Do.
type lastDo struct {
	inputsHash string
	observed   Observed // of the last success with these inputs
	at         time.Time
	failed     *outcome // nil: it succeeded
	failures   int      // in a row, with these inputs
}

// rests says for how long a Do that failed is not called, although an event has
// woken its object: a server that refuses requests gets no more of them.
func (d lastDo) rests() time.Duration {
	if d.failed == nil || !d.failed.Retry {
		return 0
	}
	return min(retryMin<<min(d.failures, 10), retryMax) - time.Since(d.at)
}
