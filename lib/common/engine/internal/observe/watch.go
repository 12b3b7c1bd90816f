package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// WatchReconciled starts the watch of the kind that the controller reconciles. The
// controller starts its workers when this watch is ready.
func (c *Cluster) WatchReconciled(watcher Watcher, obj client.Object) error {
	c.reconciled = c.KindOf(obj)
	return watcher.Watch(ownSource{c})
}

// ownSource is the watch of the reconciled kind. source.Kind is not used, because it waits for
// every kind of the cache: one kind with a forbidden watch would block all controllers.
type ownSource struct{ *Cluster }

// Start stores the controller's queue and lifetime, which all watches need.
func (s ownSource) Start(ctx context.Context, q queue) error {
	s.lifetime, s.queue = ctx, q
	s.ensureWatch(s.reconciled)
	return nil
}

// attachRetry is the time until the watch of the reconciled kind is started again, for
// example because its definition is not installed yet.
const attachRetry = time.Second

// WaitForSync returns when the watch is ready, or with the error of the last attempt.
func (s ownSource) WaitForSync(ctx context.Context) error {
	var failure error
	for {
		w := s.ensureWatch(s.reconciled)
		select {
		case <-w.settled:
			if w.err == nil {
				return nil
			}
			failure = w.err
		case <-ctx.Done():
		}
		select {
		case <-time.After(attachRetry):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil
			}
			return fmt.Errorf("the watch of %s is not ready in time: %w", s.reconciled.Kind, errors.Join(failure, s.WatchFailure(s.reconciled)))
		}
	}
}

// watch is the watch of one kind. It is ready when the cache and its index are filled and
// the handler is attached, so that no event after a read can be missed.
type watch struct {
	settled chan struct{} // closed when the watch is ready or has failed
	since   time.Time
	err     error // valid once settled is closed
	waiting sets.Set[reconcile.Request]
}

// errUnsettled is the error for a watch that is slow, although nothing has failed.
var errUnsettled = errors.New("the watch is not ready yet")

// watch starts the watch of the kind, if it does not exist, and waits until it is ready, for at
// most ReadTimeout since its start. After that, it returns the last failure of the watch or, if
// nothing has failed, errUnsettled; the request is queued again when the watch is ready.
func (c *Cluster) watch(ctx context.Context, kind schema.GroupVersionKind, request reconcile.Request) error {
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
	}
	failure := c.WatchFailure(kind)
	switch {
	case apierrors.IsForbidden(failure):
		return fmt.Errorf("%s cannot be watched: check that the operator has the rights to list and watch this kind", kind.Kind)
	case failure != nil:
		return fmt.Errorf("%s cannot be watched: %w", kind.Kind, failure)
	}
	c.queueWhenSettled(w, request)
	return errUnsettled
}

func (c *Cluster) queueWhenSettled(w *watch, request reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.settled:
		c.queue.Add(request)
	default:
		w.waiting.Insert(request)
	}
}

// ensureWatch returns the watch of a kind. If it does not exist, it is started in the
// background.
func (c *Cluster) ensureWatch(kind schema.GroupVersionKind) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[kind]
	if w == nil {
		w = &watch{settled: make(chan struct{}), since: time.Now(), waiting: sets.New[reconcile.Request]()}
		c.watches[kind] = w
		go c.run(kind, w)
	}
	return w
}

func (c *Cluster) run(kind schema.GroupVersionKind, w *watch) {
	err := c.attach(kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		w.err = fmt.Errorf("watching %s: %w", kind.Kind, err)
		delete(c.watches, kind) // the next pass tries again
	}
	close(w.settled)
	for request := range w.waiting {
		c.queue.Add(request)
	}
}

// attach attaches the handler, and returns when the kind's cache is filled or the controller
// ends.
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
	if err := (&source.Informer{Informer: informer, Handler: c.handler(kind)}).Start(c.lifetime, c.queue); err != nil {
		return err
	}
	select {
	case <-informer.HasSyncedChecker().Done():
		return nil
	case <-c.lifetime.Done():
		return c.lifetime.Err()
	}
}

func (c *Cluster) handler(kind schema.GroupVersionKind) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { c.wake(q, kind, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { c.wake(q, kind, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			c.wake(q, kind, e.Object)
			c.forgetContent(KeyOf(kind, e.Object))
		},
	}
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
