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
// controller starts its workers when this watch is ready. The first source stores the
// controller's queue and lifetime, which wake and other watches need, and adds the handler
// of this package, which wakes owners and readers. The second source queues the reconciled
// object itself.
func (c *Cluster) WatchReconciled(watcher Watcher, obj client.Object) error {
	capture := source.Func(func(ctx context.Context, q queue) error {
		c.lifetime, c.queue = ctx, q
		c.ensureWatch(c.KindOf(obj))
		return nil
	})
	if err := watcher.Watch(capture); err != nil {
		return err
	}
	return watcher.Watch(source.Kind[client.Object](c.Cache, obj, &handler.EnqueueRequestForObject{}))
}

// watch is the watch of one kind. It is ready when the cache and its index are filled and
// the handler is attached, so that no event after a read can be missed.
type watch struct {
	settled chan struct{} // closed when the watch is ready or has failed
	since   time.Time
	err     error // valid once settled is closed
}

// watch starts the watch of the kind, if it does not exist, and waits until it is ready.
func (c *Cluster) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := c.Served(ctx, kind); err != nil || c.Cache == nil {
		return err
	}
	w := c.ensureWatch(kind)
	select {
	case <-w.settled:
		return w.err
	default:
	}
	// A watch that is forbidden never becomes ready: later passes do not wait again.
	limit := time.NewTimer(time.Until(w.since.Add(c.ReadTimeout)))
	defer limit.Stop()
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("%s cannot be watched: check that the operator has the rights to list and watch this kind", kind.Kind)
	}
}

// ensureWatch returns the watch of a kind. If it does not exist, it is started in the
// background.
func (c *Cluster) ensureWatch(kind schema.GroupVersionKind) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[kind]
	if w == nil {
		w = &watch{settled: make(chan struct{}), since: time.Now()}
		c.watches[kind] = w
		go c.run(kind, w)
	}
	return w
}

func (c *Cluster) run(kind schema.GroupVersionKind, w *watch) {
	defer close(w.settled)
	if err := c.attach(kind); err != nil {
		w.err = fmt.Errorf("watching %s: %w", kind.Kind, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, kind) // the next pass tries again
	}
}

// attach returns when the kind's cache is filled and the handler has received every object
// in it, or when the controller ends. source.Kind is not used, because it waits for every
// kind of the cache: one kind with a forbidden watch would block all kinds.
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
			deleted := objectsOf(obj)
			c.wake(kind, deleted...)
			c.forgetContent(KeyOf(kind, deleted[0]))
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

// objectsOf returns the objects of an event. If the watch has missed a deletion, the event
// has the last version that the watch has shown.
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

// indexName is the field by which the cache finds the children of an owner. Each controller
// has its own index, because adding an index twice is an error.
func (c *Cluster) indexName() string { return "asterism.dev/owner-uid-for-" + c.Name }

func (c *Cluster) index(obj client.Object) error {
	return c.Cache.IndexField(context.Background(), obj, c.indexName(), func(obj client.Object) []string {
		if owner := OwnerUID(obj); owner != "" {
			return []string{string(owner)}
		}
		return nil
	})
}
