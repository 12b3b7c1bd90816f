package observe

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	request   reconcile.Request
	seen      sets.Set[Key]
	objects   map[Key]client.Object // as the pass has read or written them; nil for none
	unsettled bool
}

// View begins a pass over the object with the UID.
func (c *Cluster) View(request reconcile.Request, uid types.UID) *View {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := &View{Cluster: c, request: request, seen: sets.New[Key](), objects: map[Key]client.Object{}}
	if before := c.uids[request]; before != uid {
		delete(c.owners, before)
		c.owners[uid], c.uids[request] = request, uid
	}
	return v
}

// Close ends the pass. An object that this pass did not look at no longer wakes the
// reconciled object.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetUnseen(v.request, v.seen)
}

// dependOn records that the pass depends on an object. It is called before the read, so that no
// event between both is lost.
func (v *View) dependOn(key Key) {
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

// Settled tells whether every watch that the pass needed was ready, or has failed. Otherwise
// the pass has seen only a part of the cluster and must judge nothing.
func (v *View) Settled() bool { return !v.unsettled }

func (v *View) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	err := v.Cluster.watch(ctx, kind, v.request)
	v.unsettled = v.unsettled || errors.Is(err, errUnsettled)
	return err
}

// Get returns an object as Current does, and the same version in the whole pass. A change of
// this object wakes the reconciled object. The first Get of a kind starts its watch and waits
// for it, for at most ReadTimeout.
func (v *View) Get(ctx context.Context, key Key) (client.Object, error) {
	v.dependOn(key)
	if known, ok := v.objects[key]; ok {
		return known, nil
	}
	if err := v.watch(ctx, key.Kind); err != nil {
		return nil, err
	}
	found, err := v.Current(ctx, key)
	if found == nil && err == nil {
		err = v.checkServed(ctx, key.Kind)
	}
	if err != nil {
		return nil, err
	}
	v.objects[key] = found
	return found, nil
}

// NoteWrite records the API server's answer to a write: this pass reads the answer, and later
// passes read no older version. The caller must not change the answer afterwards.
func (v *View) NoteWrite(key Key, answer client.Object) {
	v.objects[key] = answer
	v.NoteVersion(key, answer)
}

// NoteVersion is NoteWrite for an answer that the pass does not read.
func (v *View) NoteVersion(key Key, answer metav1.Object) {
	v.note(key, write{version: answer.GetResourceVersion(), owner: OwnerUID(answer)})
}

// NoteRefused records that the API server has a newer version than this one, which it has refused
// to change: later passes do not read this version again.
func (v *View) NoteRefused(key Key, stale metav1.Object) {
	v.note(key, write{version: stale.GetResourceVersion(), owner: OwnerUID(stale), refused: true})
}

// NoteDelete records that the API server has accepted the deletion of an object.
func (v *View) NoteDelete(key Key, obj client.Object) {
	deleted := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	v.objects[key] = deleted
	v.note(key, write{version: obj.GetResourceVersion(), owner: OwnerUID(obj), uid: obj.GetUID(), deleted: true})
}

// AwaitServed wakes the reconciled object when the API server serves the kind. One timer of
// the controller asks for all objects, as long as one of them waits.
func (v *View) AwaitServed(kind schema.GroupVersionKind) {
	v.dependOn(Key{Kind: kind})
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Cache != nil && !v.awaited.Has(kind) {
		v.awaited.Insert(kind)
		go v.askUntilServed(kind)
	}
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
	_, err = v.kinds.lookup(ctx, kind, true)
	return err
}

// List returns the objects of a kind with the labels from the cache, in the namespace or,
// if it is "", in all namespaces. Every change of an object of the kind in this scope wakes
// the reconciled object.
func (v *View) List(ctx context.Context, kind schema.GroupVersionKind, namespace string, labels map[string]string) ([]client.Object, error) {
	v.dependOn(Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace}})
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
// without a look. Only children in the namespace of the reconciled object are found, if it has
// one.
func (v *View) Children(ctx context.Context, kind schema.GroupVersionKind, owner types.UID) ([]client.Object, error) {
	if err := v.watch(ctx, kind); err != nil {
		return nil, err
	}
	options := []client.ListOption{client.MatchingFields{v.indexName(): string(owner)}}
	namespaced, err := v.Namespaced(ctx, kind)
	if err != nil {
		return nil, err
	}
	if namespaced {
		options = append(options, client.InNamespace(v.request.Namespace))
	}
	written := v.written(kind, owner) // before the read: the watch shows a write that is forgotten in between
	children, err := v.list(ctx, kind, options...)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		written.Delete(KeyOf(kind, child))
	}
	for key := range written {
		child, err := v.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if child != nil && OwnerUID(child) == owner {
			children = append(children, child)
		}
	}
	return children, nil
}
