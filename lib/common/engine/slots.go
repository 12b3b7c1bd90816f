package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// slotRetry is the time until an object without a slot tries again, even if its turn was lost.
const slotRetry = 10 * time.Second

// slots bounds the concurrent calls of Do in one namespace, so that servers that do not answer
// occupy only a part of the workers. Cluster-scoped objects share the namespace "".
type slots struct {
	limit int
	queue prometheus.Gauge // the number of waiting objects

	mu      sync.Mutex
	taken   map[string]int
	waiting map[string][]reconcile.Request // in turn
	called  map[reconcile.Request]bool     // it is their turn, which another object may take before they do
	ended   bool
}

// minSlots is the least number of calls of Do at a time in one namespace.
const minSlots = 4

func newSlots(workers int, queue prometheus.Gauge) *slots {
	return &slots{limit: max(minSlots, workers/4), queue: queue, taken: map[string]int{}, waiting: map[string][]reconcile.Request{}, called: map[reconcile.Request]bool{}}
}

// take takes a slot of the object's namespace, or makes the object wait for its turn.
func (s *slots) take(request reconcile.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[request.Namespace] < s.limit {
		s.taken[request.Namespace]++
		delete(s.called, request)
		return true
	}
	if waiting := s.waiting[request.Namespace]; !s.ended && !slices.Contains(waiting, request) {
		place := len(waiting)
		if s.called[request] {
			place = 0
		}
		s.waiting[request.Namespace] = slices.Insert(waiting, place, request)
		s.queue.Inc()
	}
	return false
}

// end leaves no waiting object in the metric, although passes may still run.
func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.waiting {
		s.queue.Sub(float64(len(waiting)))
	}
	s.waiting, s.ended = map[string][]reconcile.Request{}, true
}

// forget takes a deleted object out of the queue.
func (s *slots) forget(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.called, request)
	waiting := s.waiting[request.Namespace]
	if i := slices.Index(waiting, request); i >= 0 {
		s.waiting[request.Namespace] = slices.Delete(waiting, i, i+1)
		s.queue.Dec()
	}
}

// release releases a slot, and returns the object whose turn it is.
func (s *slots) release(namespace string) []reconcile.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[namespace]--; s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
	next := s.waiting[namespace]
	if len(next) > 0 {
		s.queue.Dec()
		s.called[next[0]] = true
	}
	if len(next) <= 1 {
		delete(s.waiting, namespace)
		return next
	}
	s.waiting[namespace] = next[1:]
	return next[:1]
}
