package engine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"asterism.dev/lib/common/engine/internal/apply"
)

// memories has the memory of each object.
type memories struct {
	mu sync.Mutex
	of map[reconcile.Request]*memory
}

// memory is what the passes over one object remember. It needs no lock: these passes follow one
// another. After a restart, a Do with Every, or whose spec has changed, is repeated once; for any
// other, the record in the status is enough.
type memory struct {
	uid            types.UID
	failures       int // passes in a row that have failed
	lastDos        map[string]lastDo
	unwrittenSince time.Time // the time since which a change of messages waits to be written; zero: none waits
	children       *apply.Memory
}

// get returns the memory of the object with the UID, which is empty for a new object.
func (m *memories) get(request reconcile.Request, uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[request] == nil || m.of[request].uid != uid {
		m.of[request] = &memory{uid: uid, lastDos: map[string]lastDo{}, children: apply.NewMemory()}
	}
	return m.of[request]
}

func (m *memories) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, request)
}

// retry returns the time until a pass that has failed is repeated.
func (m *memory) retry() time.Duration {
	m.failures++
	return backOff(m.failures-1, retryMax)
}

// backOff doubles with each failure before.
func backOff(failures int, limit time.Duration) time.Duration {
	return min(retryMin<<min(failures, 20), limit)
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
	return backOff(d.failures, limit)
}
