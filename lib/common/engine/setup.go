package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

var standard = limits{
	workers: 32, readTimeout: 10 * time.Second, discoveryRetry: 30 * time.Second,
	Limits: apply.Limits{JobRetryMin: 5 * time.Second, JobRetryMax: 5 * time.Minute, RestoresAtOnce: 200, RestoreEvery: retryMax},
}

// access has the clients with which an engine accesses the cluster.
type access struct {
	client      client.Client
	cache       cache.Cache // nil: nothing is watched
	cached, api client.Reader
	failure     func(schema.GroupVersionKind) error // of the watch of a kind
	discovery   observe.Discovery
	recorder    record.EventRecorder
}

// SetupWithManager adds the kind's controller to the manager. MaxConcurrentReconciles of the
// manager's controllers, if set, replaces the number of workers.
func (s Service[T]) SetupWithManager(mgr ctrl.Manager) error {
	a, err := accessOf(mgr, s.Name)
	if err != nil {
		return fmt.Errorf("controller %s: %w", s.Name, err)
	}
	l := standard
	if workers := mgr.GetControllerOptions().MaxConcurrentReconciles; workers > 0 {
		l.workers = workers
	}
	return s.addTo(mgr, newReconciler(s, l, a))
}

// NewCache makes the cache of every manager with a Service: the cache knows why a watch is not
// ready.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	return observe.NewCache(config, options)
}

// Kind returns an empty object of the kind.
func (s Service[T]) Kind() client.Object { return newOf[T]() }

func accessOf(mgr ctrl.Manager, name string) (access, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return access{}, err
	}
	failures, ok := mgr.GetCache().(observe.Failures)
	if !ok {
		return access{}, errors.New("the manager needs NewCache of this package as the option NewCache")
	}
	recorder, err := newRecorder(mgr, name)
	return access{
		client: mgr.GetClient(), cache: mgr.GetCache(), cached: mgr.GetCache(), api: mgr.GetAPIReader(),
		failure: failures.WatchFailure, discovery: kinds, recorder: recorder,
	}, err
}

func newReconciler[T Object](s Service[T], l limits, a access) *reconciler[T] {
	a.client = boundedClient{a.client, l.readTimeout}
	cluster := observe.New(observe.Options{
		Name: s.Name, Scheme: a.client.Scheme(), Discovery: a.discovery, Cache: a.cache, Cached: a.cached, API: a.api,
		WatchFailure: a.failure,
		ReadTimeout:  l.readTimeout, DiscoveryRetry: l.discoveryRetry,
	})
	kind := cluster.KindOf(newOf[T]())
	var owns []schema.GroupVersionKind
	for _, kind := range s.Owns {
		owns = append(owns, cluster.KindOf(kind))
	}
	return &reconciler[T]{service: s, engine: &engine{
		limits:  l,
		kind:    kind,
		cluster: cluster,
		settings: &apply.Settings{
			Name: s.Name, Client: a.client, Owns: owns, Limits: l.Limits, JobEnded: jobEnded(kind.Kind),
		},
		recorder: a.recorder,
		pod:      ownPod(),
		memories: &memories{of: map[reconcile.Request]*memory{}},
		slots:    newSlots(l.workers, doWaiting.WithLabelValues(kind.Kind)),

		fallbackHashKey: newHashKey(),
	}}
}

func (s Service[T]) addTo(mgr ctrl.Manager, r *reconciler[T]) error {
	c, err := controller.New(s.Name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: r.engine.workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryMin, retryMax),
	})
	if err != nil {
		return fmt.Errorf("controller %s: %w", s.Name, err)
	}
	shown.begin(r.engine)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.engine.endMetrics()
		return nil
	})); err != nil {
		return err
	}
	return r.engine.cluster.WatchReconciled(c, newOf[T]())
}

// Unwatched returns a reconciler without a manager: c replaces the cache and receives every
// write, nothing is watched, and no event is recorded. It is for tests and for tools that
// show the effect of a service.
func (s Service[T]) Unwatched(c client.Client, api client.Reader, kinds observe.Discovery) reconcile.Reconciler {
	return newReconciler(s, standard, access{client: c, cached: c, api: api, discovery: kinds, recorder: &record.FakeRecorder{}})
}
