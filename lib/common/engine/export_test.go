package engine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Seam has the parts of an engine that a test may replace, to observe calls, to shorten
// times, or to inject failures.
type Seam struct {
	Client client.Client
	Cached client.Reader
	Live   client.Reader
	Cache  cache.Cache
	// WatchFailure returns the last error of the watch of a kind.
	WatchFailure func(schema.GroupVersionKind) error
	// Discover is called before discovery; its error is returned as discovery's error.
	Discover func() error

	Workers        int
	ReadTimeout    time.Duration
	DiscoveryRetry time.Duration
	apply.Limits

	// Pod is the operator's pod.
	Pod *corev1.ObjectReference

	// Remembered is set to a function that counts the entries in the engine's memory.
	Remembered *func() int
	Count      func() int
}

// Setup is SetupWithManager with a changed engine.
func (s Service[T]) Setup(mgr ctrl.Manager, change func(*Seam)) error {
	a, err := accessOf(mgr, s.Name)
	if err != nil {
		return err
	}
	seam := Seam{
		Client: a.client, Cached: a.Cached, Live: a.API, Cache: a.Cache, WatchFailure: a.WatchFailure,
		Workers: a.workers, ReadTimeout: a.ReadTimeout, DiscoveryRetry: a.DiscoveryRetry, Limits: a.Limits,
	}
	change(&seam)
	a.client, a.Cached, a.API, a.Cache, a.WatchFailure = seam.Client, seam.Cached, seam.Live, seam.Cache, seam.WatchFailure
	a.workers, a.ReadTimeout, a.DiscoveryRetry, a.Limits = seam.Workers, seam.ReadTimeout, seam.DiscoveryRetry, seam.Limits
	if seam.Discover != nil {
		a.Discovery = failingDiscovery{a.Discovery, seam.Discover}
	}
	r := newReconciler(s, a)
	r.engine.pod = seam.Pod
	if seam.Remembered != nil {
		*seam.Remembered = r.engine.remembered
	}
	return s.addTo(mgr, r)
}

// remembered counts the entries of every map.
func (e *engine) remembered() int {
	e.memories.mu.Lock()
	defer e.memories.mu.Unlock()
	return e.cluster.Remembered() + len(e.memories.of)
}

// SharesMemory tells whether passes over objects of one name with these UIDs have one memory.
func SharesMemory(first, second types.UID) bool {
	m := memories{of: map[ctrl.Request]*memory{}}
	return m.get(requestOf("a"), first) == m.get(requestOf("a"), second)
}

// NewObjectMetrics returns metrics of at most limit objects.
func NewObjectMetrics(limit int) *objectMetrics { return newObjectMetrics(limit) }

// Set sets the conditions of an object in the namespace n, and the expiry of a certificate.
func (m *objectMetrics) Set(kind, name string, conditions ...metav1.Condition) {
	m.set(m.engineOf(kind), requestOf(name), conditions, map[string]time.Time{"secret/tls": time.Unix(1, 0)}, true)
}

// SetExpiries sets when the certificates of an object in the namespace n expire; all tells whether
// the pass has read all of them.
func (m *objectMetrics) SetExpiries(kind, name string, expiries map[string]time.Time, all bool) {
	m.set(m.engineOf(kind), requestOf(name), nil, expiries, all)
}

// engineOf returns the engine of a kind, whose objects are shown.
func (m *objectMetrics) engineOf(kind string) *engine {
	for e := range m.engines {
		if e.kind.Kind == kind {
			return e
		}
	}
	e := &engine{kind: schema.GroupVersionKind{Kind: kind}}
	m.begin(e)
	return e
}

// Forget forgets an object in the namespace n.
func (m *objectMetrics) Forget(kind, name string) { m.forget(m.engineOf(kind), requestOf(name)) }

func requestOf(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: name}}
}

// Slots are the slots for calls of Do of an engine with a number of workers.
type Slots struct{ slots *slots }

// NewSlots returns free slots.
func NewSlots(workers int, queue prometheus.Gauge) Slots { return Slots{newSlots(workers, queue)} }

// Take takes a slot of the namespace n for an object.
func (s Slots) Take(name string) bool { return s.slots.take(requestOf(name)) }

// Release releases a slot, and returns the objects whose turn it is.
func (s Slots) Release() []ctrl.Request { return s.slots.release("n") }

// Forget is for an object that is gone.
func (s Slots) Forget(name string) { s.slots.forget(requestOf(name)) }

// End is for the end of the manager.
func (s Slots) End() { s.slots.end() }

// JobRetryWait is the time until the next run of a Job that has failed.
func JobRetryWait(first, last time.Time) time.Duration {
	return standardLimits.RetryWait(first, last)
}

// DoPause is the time between a failed call of Do and the next one, after a number of failures
// and calls that have been slow for some time.
func DoPause(failures int, slow time.Duration) time.Duration {
	last := lastDo{at: time.Now(), failures: failures}
	if slow > 0 {
		last.slowSince = last.at.Add(-slow)
	}
	return last.pause()
}

// DoAfterSilence returns a function that calls the Do of the stage if it is due for an object, whose
// server has then been silent for an hour. It returns the time until Do is called again; 0 if it
// was called.
func DoAfterSilence[T Object](s Stage[T], scheme *runtime.Scheme) func(ctx context.Context, cr T) time.Duration {
	r := newReconciler(Service[T]{Name: "silence", Stages: []Stage[T]{s}}, access{Options: observe.Options{Scheme: scheme}, workers: 1})
	return func(ctx context.Context, cr T) time.Duration {
		p := &passOf[T]{pass: r.engine.begin(requestOf(cr.GetName()), cr, cr), service: r.service, cr: cr}
		before := p.memory.lastDos[s.Condition].at
		inputsHash, err := p.gatherFor(ctx, s)
		if err == nil {
			err = p.doIfDue(ctx, s, inputsHash)
		}
		last := p.memory.lastDos[s.Condition]
		if last.at.Equal(before) {
			return outcomeOf(err).After
		}
		last.failures, last.slowSince = 30, last.at.Add(-time.Hour)
		p.memory.lastDos[s.Condition] = last
		return 0
	}
}

// DoRepeat is the time between two calls of a Do with Every.
func DoRepeat(every time.Duration) time.Duration { return jitter(every) }

// failingDiscovery fails if fail returns an error.
type failingDiscovery struct {
	observe.Discovery
	fail func() error
}

func (f failingDiscovery) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	return f.Discovery.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
}
