package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// wake queues the object itself if it is reconciled, its owner, and the objects whose last or
// present pass looked at the object or at all objects of its kind. It forgets the controller's
// last write of the object if the watch has shown it. The newest version is the last argument.
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
	if kind == c.reconciled {
		q.Add(reconcile.Request{NamespacedName: key.NamespacedName})
	}
	if last, ok := c.writes[key]; ok && !last.isAhead(newest) {
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

// askUntilServed queues the objects that wait for the kind when it is served, and ends when none
// waits.
func (c *Cluster) askUntilServed(kind schema.GroupVersionKind) {
	for {
		select {
		case <-time.After(c.DiscoveryRetry):
		case <-c.lifetime.Done():
			return
		}
		served := c.Served(c.lifetime, kind) == nil
		c.mu.Lock()
		waiting := c.readers[Key{Kind: kind}]
		if served || waiting.Len() == 0 {
			delete(c.awaited, kind)
			for request := range waiting {
				c.queue.Add(request)
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// Enqueue starts passes over the objects.
func (c *Cluster) Enqueue(requests ...reconcile.Request) {
	for _, request := range requests {
		c.queue.Add(request)
	}
}

// Forget removes all memory of a deleted object.
func (c *Cluster) Forget(kind schema.GroupVersionKind, request reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetUnseen(request, nil)
	delete(c.lookedAt, request)
	delete(c.owners, c.uids[request])
	delete(c.uids, request)
	delete(c.writes, Key{Kind: kind, NamespacedName: request.NamespacedName})
}

func (c *Cluster) forgetUnseen(request reconcile.Request, seen sets.Set[Key]) {
	for key := range c.lookedAt[request] {
		if seen.Has(key) {
			continue
		}
		c.lookedAt[request].Delete(key)
		c.readers[key].Delete(request)
		if c.readers[key].Len() == 0 {
			delete(c.readers, key)
			c.dropContent(key)
			delete(c.writes, key) // no pass reads it again
		}
	}
}

// Remembered counts the entries in memory, so that tests can verify that they are removed.
func (c *Cluster) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := len(c.owners) + len(c.uids) + len(c.readers) + len(c.writes) + len(c.contents)
	for _, looked := range c.lookedAt {
		count += 1 + looked.Len()
	}
	return count
}
