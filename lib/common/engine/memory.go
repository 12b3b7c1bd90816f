package engine

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory has the last Do of each stage of each object, the back-off of its passes, and the time
// since which its status waits to be written. After a restart, a Do with Every, or whose spec
// has changed, is repeated once; for any other, the record in the status is enough.
type memory struct {
	retries workqueue.TypedRateLimiter[reconcile.Request] // back-off of passes

	mu        sync.Mutex
	lastDos   map[reconcile.Request]map[string]lastDo
	unwritten map[reconcile.Request]time.Time
}

func newMemory() *memory {
	return &memory{retries: newRetries(), lastDos: map[reconcile.Request]map[string]lastDo{}, unwritten: map[reconcile.Request]time.Time{}}
}

func newRetries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryMin, retryMax)
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
	m.retries.Forget(request)
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
	repeat     time.Duration // Every, with a jitter
	failed     *outcome      // nil: the call succeeded
	failures   int           // in a row, with these inputs
	slowSince  time.Time     // of the first of these calls, if each has taken slowCall; a server does not answer
}

// backOff returns the time for which a Do that failed is not called again, even if an event
// starts a pass, so that a failing server is not called too often.
func (d lastDo) backOff() time.Duration {
	if d.failed == nil {
		return 0
	}
	pause := d.pause()
	if !d.failed.Retry { // the event may report what Do waits for
		pause = min(pause, waitPauseMax)
	}
	return pause - time.Since(d.at)
}

// pause is the time between a failed call and the next call with the same inputs.
func (d lastDo) pause() time.Duration {
	limit := retryMax
	if !d.slowSince.IsZero() && d.at.Sub(d.slowSince) >= silentFor {
		limit = silentRetryMax
	}
	return min(retryMin<<min(d.failures, 20), limit)
}
