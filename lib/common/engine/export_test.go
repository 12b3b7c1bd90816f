package engine

import (
	"encoding/json"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Seam is what a test may replace in an engine: to watch it, to hurry it, or to
// break it on purpose.
type Seam struct {
	Client    client.Client
	Cached    client.Reader
	Live      client.Reader
	Informers cache.Informers

	Workers        int
	ReadTimeout    time.Duration
	DiscoveryRetry time.Duration
	JobRetryMin    time.Duration

	// Remembered is set to a function that counts what the engine remembers.
	Remembered *func() int
	Count      func() int
}

// Setup is SetupWithManager with a changed engine.
func (s Service[T]) Setup(mgr ctrl.Manager, change func(*Seam)) error {
	seam := Seam{
		Client: mgr.GetClient(), Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Informers: mgr.GetCache(),
		Workers: standard.workers, ReadTimeout: standard.readTimeout,
		DiscoveryRetry: standard.discoveryRetry, JobRetryMin: standard.jobRetryMin,
	}
	change(&seam)
	l := limits{
		workers: seam.Workers, readTimeout: seam.ReadTimeout, discoveryRetry: seam.DiscoveryRetry,
		jobRetryMin: seam.JobRetryMin, jobRetryMax: standard.jobRetryMax,
	}
	e := &engine{
		limits: l, owner: s.Name, gvk: kindOf(mgr.GetScheme(), newOf[T]()), owns: s.Owns,
		client: seam.Client, recorder: newRecorder(mgr.GetClient(), s.Name),
		observer: newObserver(l, mgr.GetScheme(), mgr.GetRESTMapper(), seam.Informers, seam.Cached, seam.Live),
		passes:   newMemory(),
	}
	if seam.Remembered != nil {
		*seam.Remembered = e.remembered
	}
	return s.setUp(mgr, e)
}

// remembered counts the entries of every map, but for children without a
// namespace, which may be other tests'.
func (e *engine) remembered() int {
	e.observer.mu.Lock()
	defer e.observer.mu.Unlock()
	e.passes.mu.Lock()
	defer e.passes.mu.Unlock()
	o := e.observer
	count := len(o.readers) + len(o.subjects) + len(o.written) + len(o.asked) + len(o.contents) + len(e.passes.effects) + len(e.passes.written) + len(e.passes.pending) +
		len(e.passes.trusted) + len(e.passes.held) + len(e.passes.gone)
	for _, of := range o.readers {
		count += of.size()
	}
	for _, of := range o.owners {
		if of.isOurs() {
			count++
		}
		for _, c := range of.children {
			if c.ref.Namespace != "" {
				count++
			}
		}
	}
	for _, of := range o.listers {
		count += len(of)
	}
	return count
}

// JobRetryWait is how long a Job that has been failing waits after a failure.
func JobRetryWait(failing, failed time.Time) time.Duration {
	return standard.retryWait(failing, failed)
}

// Covers says whether a list of fields, in JSON, has every field of a body.
func Covers(fields string, body map[string]any) bool {
	var owned map[string]any
	return json.Unmarshal([]byte(fields), &owned) == nil && covers(owned, ownable(body))
}

// MaxShared and Shared are how much Trim may remember, and does.
const MaxShared = maxShared

func Shared() int {
	alike.mu.Lock()
	defer alike.mu.Unlock()
	return len(alike.latest) + len(alike.older)
}
