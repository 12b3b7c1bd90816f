package engine

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
	if e.failed == nil || !e.failed.retry {
		return 0
	}
	return min(retryMin<<min(e.failures, 10), retryMax) - time.Since(e.at)
}

// memory keeps the effects of each object's stages and when its status was
// written last. Losing it costs one idempotent repetition.
type memory struct {
	mu      sync.Mutex
	effects map[reconcile.Request]map[string]effect
	written map[reconcile.Request]time.Time
	pending map[reconcile.Request]time.Time // since when progress waits to be written
	bucket  *rate.Limiter                   // of writes of progress
	lists   *rate.Limiter                   // of holders
	gone    map[reconcile.Request]types.UID
	held    map[reconcile.Request]map[objectKey]held
	trusted map[reconcile.Request][]removal // whose absence in the watch needs no live read
}

// removal of an object which the server has agreed to, or which a live read has
// confirmed; the UID is that of the object, if there was one.
type removal struct {
	ref ref
	uid types.UID
	at  time.Time
}

// held is what was found to keep a child from going.
type held struct {
	by    []string
	at    time.Time
	again time.Time // when to look again
}

func newMemory() *memory {
	return &memory{
		effects: map[reconcile.Request]map[string]effect{},
		written: map[reconcile.Request]time.Time{},
		pending: map[reconcile.Request]time.Time{},
		bucket:  rate.NewLimiter(progressRate, progressBurst),
		lists:   rate.NewLimiter(progressRate, progressBurst),
		gone:    map[reconcile.Request]types.UID{},
		held:    map[reconcile.Request]map[objectKey]held{},
		trusted: map[reconcile.Request][]removal{},
	}
}

// Mere progress is written at most this often. What a rollout says changes faster
// than people read, stages become done in a row, and every parent repeats it. What
// is quickly done never says so in between, and where very many objects are under
// way, each says so more rarely.
const (
	progressEvery  = 3 * time.Second // of one object
	progressRate   = 5               // a second, of all objects of a controller
	progressBurst  = 20
	progressLatest = 5 * time.Minute // however many there are
)

// progressDue says how long progress has still to wait until it is written.
func (m *memory) progressDue(request reconcile.Request) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, waits := m.pending[request]
	if !waits {
		since = time.Now()
		m.pending[request] = since
	}
	last, ever := m.written[request]
	if !ever {
		last = since
	}
	if left := progressEvery - time.Since(last); left > 0 {
		return left
	}
	if waited := time.Since(since); waited < progressLatest && !m.bucket.Allow() {
		return min(max(progressEvery, waited), progressLatest-waited) // the longer, the more rarely
	}
	return 0
}

// writeStatus remembers that it was written. What is ready makes no progress.
func (m *memory) writeStatus(request reconcile.Request, ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	drop(&m.pending, request)
	if drop(&m.written, request); !ready {
		m.written[request] = time.Now()
	}
}

// holders are those that were found last, and how long they need not be looked for
// again. Where very many children wait to go, not all can have their holders listed:
// who is not allowed to asks again when he has waited for twice as long.
func (m *memory) holders(request reconcile.Request, child objectKey, since time.Time) (names []string, left time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.held[request][child]
	if last.at.Before(since) {
		last = held{}
	}
	if left = time.Until(last.again); left <= 0 && !m.lists.Allow() {
		left = heldFor(since)
	}
	return last.by, left
}

func (m *memory) setHolders(request reconcile.Request, child objectKey, names []string, again time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[request] == nil {
		m.held[request] = map[objectKey]held{}
	}
	m.held[request][child] = held{by: names, at: time.Now(), again: time.Now().Add(again)}
}

// trusts says whether the watch is proof that the object is gone, and since when.
func (m *memory) trusts(request reconcile.Request, key objectKey) (removal, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.trusted[request] {
		if known.ref == refOf(key) {
			return known, true
		}
	}
	return removal{}, false
}

func (m *memory) trust(request reconcile.Request, key objectKey, uid types.UID) {
	m.distrust(request, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trusted[request] = append(m.trusted[request], removal{ref: refOf(key), uid: uid, at: time.Now()})
}

// distrust the watch: the object is about to be made, and the answer may be lost.
func (m *memory) distrust(request reconcile.Request, key objectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trusted[request] = slices.DeleteFunc(m.trusted[request], func(known removal) bool { return known.ref == refOf(key) })
	if len(m.trusted[request]) == 0 {
		drop(&m.trusted, request)
	}
}

// letGo remembers an object whose finalizer was taken off: it is gone, although
// the watch has not shown that yet.
func (m *memory) letGo(request reconcile.Request, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[request] = uid
	drop(&m.trusted, request) // a namesake may come before this one is seen gone
}

func (m *memory) hasLetGo(request reconcile.Request, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[request] == uid
}

func (m *memory) get(request reconcile.Request, stage string) (effect, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.effects[request][stage]
	return found, ok
}

func (m *memory) set(request reconcile.Request, stage string, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.effects[request] == nil {
		m.effects[request] = map[string]effect{}
	}
	m.effects[request][stage] = e
}

func (m *memory) forget(request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	drop(&m.effects, request)
	drop(&m.written, request)
	drop(&m.pending, request)
	drop(&m.gone, request)
	drop(&m.held, request)
	drop(&m.trusted, request)
}

// drop is delete, and gives back the room of what has become empty: a map never
// shrinks, and ten thousand objects may have been in it at once.
func drop[K comparable, V any](from *map[K]V, key K) {
	if delete(*from, key); len(*from) == 0 {
		*from = map[K]V{}
	}
}
