package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// WatchReconciled starts the watch of the kind that the controller reconciles. The
// controller starts its workers when that watch is ready.
func (c *Cluster) WatchReconciled(watcher Watcher, obj client.Object) error {
	begin := source.Func(func(ctx context.Context, q queue) error {
		c.lifetime, c.queue = ctx, q
		c.started(c.Kind(obj))
		return nil
	})
	if err := watcher.Watch(begin); err != nil {
		return err
	}
	return watcher.Watch(source.Kind[client.Object](c.Cache, obj, &handler.EnqueueRequestForObject{}))
}

// wake queues the owner of an object, and whoever looked at the object, or at
// all of its kind, in the last pass. The newest version comes last.
func (c *Cluster) wake(kind schema.GroupVersionKind, versions ...client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range versions {
		if owner, ok := c.owners[OwnerUID(obj)]; ok {
			c.queue.Add(owner)
		}
	}
	newest := versions[len(versions)-1]
	key := KeyOf(kind, newest)
	if last, ok := c.writes[key]; ok && !last.isAhead(newest) {
		delete(c.writes, key)
	}
	inNamespace, everywhere := Key{Kind: kind}, Key{Kind: kind}
	inNamespace.Namespace = key.Namespace
	for _, looked := range []Key{key, inNamespace, everywhere} {
		for request := range c.readers[looked] {
			c.queue.Add(request)
		}
	}
}

// watch makes sure that the kind is watched, from its first use on.
func (c *Cluster) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := c.Served(ctx, kind); err != nil || c.Cache == nil {
		return err
	}
	w := c.started(kind)
	select {
	case <-w.ready:
		return w.err
	default:
	}
	// A watch that is forbidden is never ready: a later pass does not wait again.
	limit := time.NewTimer(time.Until(w.since.Add(c.ReadTimeout)))
	defer limit.Stop()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("%s cannot be watched: does the operator have the rights to list and watch it?", kind.Kind)
	}
}

func (c *Cluster) started(kind schema.GroupVersionKind) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[kind]
	if w == nil {
		w = &watch{ready: make(chan struct{}), since: time.Now()}
		c.watches[kind] = w
		go c.start(kind, w)
	}
	return w
}

func (c *Cluster) start(kind schema.GroupVersionKind, w *watch) {
	defer close(w.ready)
	if err := c.attach(kind); err != nil {
		w.err = fmt.Errorf("watching %s: %w", kind.Kind, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, kind) // the next pass tries again
	}
}

// attach returns when the kind's cache is filled and the handler has seen every
// object in it, or when the controller ends. source.Kind would wait for every kind
// of the cache: a kind that may not be watched would hold up all others.
func (c *Cluster) attach(kind schema.GroupVersionKind) error {
	obj, err := c.newObject(kind)
	if err != nil {
		return err
	}
	informer, err := c.Cache.GetInformer(c.lifetime, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if err := c.index(obj); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.wake(kind, objectsOf(obj)...) },
		UpdateFunc: func(before, now any) { c.wake(kind, objectsOf(before, now)...) },
		DeleteFunc: func(obj any) {
			gone := objectsOf(obj)
			c.wake(kind, gone...)
			c.forgetContent(KeyOf(kind, gone[0]))
		},
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(c.lifetime.Done(), registration.HasSynced) {
		return c.lifetime.Err()
	}
	return nil
}

// objectsOf an event. The last of an object whose deletion was missed is known.
func objectsOf(event ...any) []client.Object {
	var all []client.Object
	for _, obj := range event {
		if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = missed.Obj
		}
		all = append(all, obj.(client.Object)) //nolint:forcetypeassert // every kind has metadata
	}
	return all
}

// indexName is the field by which the cache finds the children of an owner. Each
// controller has an index of its own, because adding an index twice is an error.
func (c *Cluster) indexName() string { return "asterism.dev/owner-uid-for-" + c.Name }

func (c *Cluster) index(obj client.Object) error {
	return c.Cache.IndexField(context.Background(), obj, c.indexName(), func(obj client.Object) []string {
		if owner := OwnerUID(obj); owner != "" {
			return []string{string(owner)}
		}
		return nil
	})
}
