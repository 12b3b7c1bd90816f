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

// View is the cluster as one pass over one object looks at it. A change of
// whatever the pass looks at wakes the object again.
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
		delete(c.owners, before) // an earlier object of that name
		c.owners[uid], c.uids[request] = request, uid
	}
	return &View{Cluster: c, request: request, seen: sets.New[Key]()}
}

// Close ends the pass. An object that this pass did not look at no longer wakes the
// object that is reconciled.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetUnseen(v.request, v.seen)
}

// look records what the pass looks at. It comes before the read, so that no
// event is lost between the two.
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

// Get returns an object as Freshest does, and a change of the object wakes the object
// that is reconciled. The first Get of a kind starts its watch and waits for it, for
// ReadTimeout at most.
func (v *View) Get(ctx context.Context, key Key) (client.Object, error) {
	v.look(key)
	if err := v.watch(ctx, key.Kind); err != nil {
		return nil, err
	}
	found, err := v.Freshest(ctx, key)
	if found == nil && err == nil {
		err = v.doubt(ctx, key.Kind)
	}
	return found, err
}

// doubt that a kind without any object is still served. Its watch goes on, and
// shows the objects that come when it is served again.
func (v *View) doubt(ctx context.Context, kind schema.GroupVersionKind) error {
	if v.Cache == nil || !v.kinds.mayBeGone(kind) {
		return nil
	}
	left, err := v.list(ctx, kind, client.Limit(1))
	if err != nil || len(left) > 0 {
		return err
	}
	return v.kinds.askAgain(ctx, kind)
}

// List returns the objects of a kind with the labels in a namespace, or, where
// that is "", everywhere, from the cache. Every change of an object of the kind
// there wakes the object that is reconciled.
func (v *View) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	v.look(Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace}})
	return v.Sample(ctx, kind, namespace, labels)
}

// Sample is List, but no change wakes the object that is reconciled.
func (v *View) Sample(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	return v.list(ctx, kind, client.InNamespace(namespace), client.MatchingLabels(labels))
}

// Children returns the objects of a kind that say that they belong to the owner,
// as its watch shows them, and those that were created since. An event of a
// child wakes the owner without a look.
func (v *View) Children(ctx context.Context, kind schema.GroupVersionKind, owner types.UID) ([]client.Object, error) {
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	created := v.created(kind, owner) // before the read: a write that is forgotten meanwhile is shown
	children, err := v.list(ctx, kind, client.MatchingFields{v.indexName(): string(owner)})
	for _, child := range children {
		delete(created, client.ObjectKeyFromObject(child))
	}
	return append(children, slices.Collect(maps.Values(created))...), err
}
