package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
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
	looked  sets.Set[Key]
}

// View begins a pass over the object with the UID.
func (c *Cluster) View(request reconcile.Request, uid types.UID) *View {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.uids[request]; before != uid {
		delete(c.owners, before) // an earlier object of that name
		c.owners[uid], c.uids[request] = request, uid
	}
	return &View{Cluster: c, request: request, looked: sets.New[Key]()}
}

// Close ends the pass. An object that this pass did not look at no longer wakes the
// object that is reconciled.
func (v *View) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep(v.request, v.looked)
}

// Forget drops everything about an object that is gone, and returns its UID.
func (c *Cluster) Forget(kind schema.GroupVersionKind, request reconcile.Request) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid := c.uids[request]
	c.keep(request, nil)
	delete(c.looked, request)
	delete(c.owners, uid)
	delete(c.uids, request)
	delete(c.writes, Key{Kind: kind, NamespacedName: request.NamespacedName})
	return uid
}

func (c *Cluster) keep(request reconcile.Request, looked sets.Set[Key]) {
	for key := range c.looked[request] {
		if looked.Has(key) {
			continue
		}
		c.looked[request].Delete(key)
		c.readers[key].Delete(request)
		if c.readers[key].Len() == 0 {
			delete(c.readers, key)
			delete(c.contents, key)
			delete(c.writes, key) // nobody compares with it any more
		}
	}
}

// look records what the pass looks at. It comes before the read, so that no
// event is lost between the two.
func (v *View) look(key Key) {
	v.looked.Insert(key)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Cluster.looked[v.request] == nil {
		v.Cluster.looked[v.request] = sets.New[Key]()
	}
	v.Cluster.looked[v.request].Insert(key)
	if v.readers[key] == nil {
		v.readers[key] = sets.New[reconcile.Request]()
	}
	v.readers[key].Insert(v.request)
}

// Get returns an object, see Freshest.
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

// Data returns the content of a Secret or ConfigMap, which is read once for each
// version; current is its metadata. nil: the object is gone.
func (v *View) Data(ctx context.Context, key Key, current client.Object) (map[string][]byte, error) {
	v.mu.Lock()
	known, ok := v.contents[key]
	v.mu.Unlock()
	if ok && known.uid == current.GetUID() && !isOlder(known.version, current.GetResourceVersion()) {
		return known.data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.ReadTimeout)
	defer cancel()
	fresh, err := v.readData(ctx, key)
	if errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.contents[key] = fresh
	return fresh.data, nil
}

func (v *View) readData(ctx context.Context, key Key) (content, error) {
	data := map[string][]byte{} // nil would be the data of an object that is gone
	if key.Kind == SecretKind {
		var secret corev1.Secret
		err := v.API.Get(ctx, key.NamespacedName, &secret)
		for name, value := range secret.Data {
			data[name] = value
		}
		return content{uid: secret.UID, version: secret.ResourceVersion, data: data}, err
	}
	var configMap corev1.ConfigMap
	err := v.API.Get(ctx, key.NamespacedName, &configMap)
	for name, text := range configMap.Data {
		data[name] = []byte(text)
	}
	for name, value := range configMap.BinaryData {
		data[name] = value
	}
	return content{uid: configMap.UID, version: configMap.ResourceVersion, data: data}, err
}

// Remembered counts what is remembered, for tests of what is forgotten.
func (c *Cluster) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := len(c.owners) + len(c.uids) + len(c.readers) + len(c.writes) + len(c.contents)
	for _, looked := range c.looked {
		count += 1 + looked.Len()
	}
	return count
}
