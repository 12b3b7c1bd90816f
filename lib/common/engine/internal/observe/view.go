package observe

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// View is the access of one pass over one object to the cluster. A change of any object
// that the pass looks at starts another pass.
type View struct {
	*Cluster
	request reconcile.Request
	seen    sets.Set[Key]
}

// View begins a pass over the object with the UID.
func (c *Cluster) View(request reconcile.Request, uid types.UID) *View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.uids[request]; before != uid {
		delete(c.owners, before) // the UID of a deleted object with the same name
		c.owners[uid], c.uids[request] = request, uid
	}
	return &View{Cluster: c, request: request, seen: sets.New[Key]()}
}

// Close ends the pass. An object that this pass did not look at no longer wakes the
// reconciled object.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetUnseen(v.request, v.seen)
}

// look records that the pass looks at an object. It is called before the read, so that no
// event between look and read is lost.
func (v *View) look(key Key) {
	v.seen.Insert(key)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lookedAt[v.request] == nil {
		v.lookedAt[v.request] = sets.New[Key]()
	}
	v.lookedAt[v.request].Insert(key)
	if v.readers[key] == nil {
		v.readers[key] = sets.New[reconcile.Request]()
	}
	v.readers[key].Insert(v.request)
}

// Get returns an object as Freshest does. A change of this object wakes the reconciled
// object. The first Get of a kind starts its watch and waits for it, for at most
// ReadTimeout.
func (v *View) Get(ctx context.Context, key Key) (client.Object, error) {
	v.look(key)
	if err := v.watch(ctx, key.Kind); err != nil {
		return nil, err
	}
	found, err := v.Freshest(ctx, key)
	if found == nil && err == nil {
		err = v.checkServed(ctx, key.Kind)
	}
	return found, err
}

// checkServed returns an error if a kind without objects is no longer served. The watch of
// the kind continues, and shows new objects when the kind is served again.
func (v *View) checkServed(ctx context.Context, kind schema.GroupVersionKind) error {
	if v.Cache == nil || !v.kinds.mayBeGone(kind) {
		return nil
	}
	left, err := v.list(ctx, kind, client.Limit(1))
	if err != nil || len(left) > 0 {
		return err
	}
	return v.kinds.askAgain(ctx, kind)
}

// List returns the objects of a kind with the labels from the cache, in the namespace or,
// if it is "", in all namespaces. Every change of an object of the kind in this scope wakes
// the reconciled object.
func (v *View) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	v.look(Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace}})
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	return v.list(ctx, kind, client.InNamespace(namespace), client.MatchingLabels(labels))
}

// Sample returns the objects of a kind, and no change of them wakes the reconciled object.
// The objects share memory with the cache, because copies of 10,000 objects take more than
// 100 MiB: they must not be changed.
func (v *View) Sample(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]client.Object, error) {
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	return v.list(ctx, kind, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
}

// Children returns the objects of a kind with the marks of the owner, as the watch shows
// them, and objects that were created since. A change of a child wakes the owner even
// without a look.
func (v *View) Children(ctx context.Context, kind schema.GroupVersionKind, owner types.UID) ([]client.Object, error) {
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	created := v.created(kind, owner) // before the read: the watch shows a write that is forgotten in between
	children, err := v.list(ctx, kind, client.MatchingFields{v.indexName(): string(owner)})
	for _, child := range children {
		delete(created, client.ObjectKeyFromObject(child))
	}
	return append(children, slices.Collect(maps.Values(created))...), err
}
