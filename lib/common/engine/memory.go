package engine

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory has the last Do of each stage of each object, and the time since which the
// object's status waits to be written. If memory is lost, Do is repeated once.
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

// statusWritten records that no change of the status waits to be written.
func (m *memory) statusWritten(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unwritten, request)
}

// unwrittenSince returns the time since which the status waits: the time of the first call
// since statusWritten.
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
	failed     *outcome // nil: the call succeeded
	failures   int      // in a row, with these inputs
}

// backOff returns the time for which a Do that failed is not called again, even if an event
// starts a pass, so that a failing server is not called too often.
func (d lastDo) backOff() time.Duration {
	if d.failed == nil || !d.failed.Retry {
		return 0
	}
	return min(retryMin<<min(d.failures, 10), retryMax) - time.Since(d.at)
}
