package engine

import (
	"cmp"
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

const (
	// standardWorkers is the number of concurrent passes over objects of one kind. A pass that
	// waits for a server occupies one worker, for at most DoTimeout in each Do and readTimeout in
	// each read and write. At most a quarter of the workers, or minSlots if that is more, wait for the
	// servers of one namespace.
	standardWorkers = 32
	readTimeout     = 10 * time.Second
	discoveryRetry  = 30 * time.Second
)

var standardLimits = apply.Limits{JobRetryMin: 5 * time.Second, JobRetryMax: 5 * time.Minute, RestoresAtOnce: 200, RestoreEvery: retryMax}

// access is how an engine accesses the cluster, and how often; tests change it.
type access struct {
	observe.Options
	apply.Limits
	client   client.Client
	recorder record.EventRecorder
	workers  int
}

// SetupWithManager adds the kind's controller to the manager. MaxConcurrentReconciles of the
// manager's controllers, if set, replaces the number of workers.
func (s Service[T]) SetupWithManager(mgr ctrl.Manager) error {
	a, err := accessOf(mgr, s.Name)
	if err != nil {
		return fmt.Errorf("controller %s: %w", s.Name, err)
	}
	return s.addTo(mgr, newReconciler(s, a))
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
		Options: observe.Options{
			Scheme: mgr.GetScheme(), Discovery: kinds, Cache: mgr.GetCache(), Cached: mgr.GetCache(), API: mgr.GetAPIReader(),
			WatchFailure: failures.WatchFailure, ReadTimeout: readTimeout, DiscoveryRetry: discoveryRetry,
		},
		Limits: standardLimits, client: mgr.GetClient(), recorder: recorder,
		workers: cmp.Or(mgr.GetControllerOptions().MaxConcurrentReconciles, standardWorkers),
	}, err
}

func newReconciler[T Object](s Service[T], a access) *reconciler[T] {
	a.Name = s.Name
	cluster := observe.New(a.Options)
	kind := cluster.KindOf(newOf[T]())
	var owns []schema.GroupVersionKind
	for _, kind := range s.Owns {
		owns = append(owns, cluster.KindOf(kind))
	}
	return &reconciler[T]{service: s, engine: &engine{
		kind:    kind,
		shown:   s.shown(),
		cluster: cluster,
		settings: &apply.Settings{
			Name: s.Name, Client: boundedClient{a.client, a.ReadTimeout}, Owns: owns, Limits: a.Limits, JobEnded: jobEnded(kind.Kind),
		},
		recorder: a.recorder,
		pod:      ownPod(),
		memories: &memories{of: map[reconcile.Request]*memory{}},
		workers:  a.workers,
		slots:    newSlots(a.workers, doWaiting.WithLabelValues(kind.Kind)),

		fallbackHashKey: newHashKey(),
	}}
}

// shown returns the conditions of the stages that are Shown.
func (s Service[T]) shown() (conditions []string) {
	for _, stage := range s.Stages {
		if stage.Shown {
			conditions = append(conditions, stage.Condition)
		}
	}
	return conditions
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
	return newReconciler(s, access{
		Options: observe.Options{Scheme: c.Scheme(), Discovery: kinds, Cached: c, API: api, ReadTimeout: readTimeout, DiscoveryRetry: discoveryRetry},
		Limits:  standardLimits, client: c, recorder: &record.FakeRecorder{}, workers: standardWorkers,
	})
}
