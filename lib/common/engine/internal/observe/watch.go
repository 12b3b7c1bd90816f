package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Reconcile starts the watch of the kind that the controller reconciles. The
// controller starts its workers when that watch is ready.
func (c *Cluster) Reconcile(watcher Watcher, obj client.Object) error {
	c.watcher = watcher
	kind := c.Kind(obj)
	ready := &watch{ready: make(chan struct{})}
	close(ready.ready)
	c.watches[kind] = ready
	if err := watcher.Watch(source.Kind[client.Object](c.Cache, obj, &handler.EnqueueRequestForObject{})); err != nil {
		return err
	}
	return watcher.Watch(source.Kind[client.Object](c.Cache, obj, c.waking(kind)))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// waking handles the events of a kind: an update wakes whoever the old or the
// new object concerns.
func (c *Cluster) waking(kind schema.GroupVersionKind) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { c.wake(q, kind, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { c.wake(q, kind, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { c.wake(q, kind, e.Object) },
	}
}

// wake queues the owner of an object, and whoever looked at the object, or at
// all of its kind, in the last pass. The newest version comes last.
func (c *Cluster) wake(q queue, kind schema.GroupVersionKind, versions ...client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range versions {
		if owner, ok := c.owners[OwnerUID(obj)]; ok {
			q.Add(owner)
		}
	}
	newest := versions[len(versions)-1]
	key := KeyOf(kind, newest)
	if last, ok := c.writes[key]; ok && !isOlder(newest.GetResourceVersion(), last.version) && !last.isAhead(newest) {
		delete(c.writes, key)
	}
	inNamespace, everywhere := Key{Kind: kind}, Key{Kind: kind}
	inNamespace.Namespace = key.Namespace
	for _, looked := range []Key{key, inNamespace, everywhere} {
		for request := range c.readers[looked] {
			q.Add(request)
		}
	}
}

// watch makes sure that the kind is watched, from its first use on.
func (c *Cluster) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	if err := c.Served(kind); err != nil || c.Cache == nil {
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

// attach returns when the handler has seen every object that exists. It waits
// for as long as the controller runs.
func (c *Cluster) attach(kind schema.GroupVersionKind) error {
	obj, err := c.newObject(kind)
	if err != nil {
		return err
	}
	if err := c.index(obj); err != nil {
		return err
	}
	events := source.Kind[client.Object](c.Cache, obj, c.waking(kind))
	if err := c.watcher.Watch(events); err != nil {
		return err
	}
	return events.WaitForSync(context.Background())
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
