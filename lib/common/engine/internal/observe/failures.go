package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Failures knows why a watch is not ready.
type Failures interface {
	// WatchFailure returns the last error of a list or watch of the kind; nil: none.
	WatchFailure(kind schema.GroupVersionKind) error
}

// failureCache is a cache with the last error of each kind's watch. The option
// DefaultWatchErrorHandler does not suffice, because it does not tell Secrets from ConfigMaps.
type failureCache struct {
	cache.Cache
	mu       sync.Mutex
	failures map[schema.GroupVersionKind]error
}

// NewCache returns a cache that implements Failures.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	c := &failureCache{failures: map[schema.GroupVersionKind]error{}}
	options.NewInformer = func(lister toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		informer := toolscache.NewSharedIndexInformer(lister, obj, resync, indexers)
		kind, err := apiutil.GVKForObject(obj, options.Scheme)
		if err != nil {
			return informer // the cache has found the kind before
		}
		_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) { // fails only after the start
			c.note(kind, err)
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		})
		return informer
	}
	var err error
	c.Cache, err = cache.New(config, options)
	return c, err
}

func (c *failureCache) note(kind schema.GroupVersionKind, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[kind] = err
}

// WatchFailure implements Failures.
func (c *failureCache) WatchFailure(kind schema.GroupVersionKind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures[kind]
}
