package observe

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write is the controller's last write of an object. It is remembered until the watch shows
// this or a later version. Only the version is remembered, and not the API server's answer:
// another client may change the object at any time.
type write struct {
	version string    // the written version; for a deletion the deleted version
	owner   types.UID // of a child
	uid     types.UID // of a deleted object
	deleted bool
	refused bool // of this version, because it is not the newest
}

// isAhead tells whether the write is newer than the version that a watch shows. If the watch
// shows no object, it may be behind the creation or show the deletion.
func (w write) isAhead(shown client.Object) bool {
	if shown == nil {
		return true
	}
	if w.deleted && shown.GetUID() == w.uid && (shown.GetDeletionTimestamp() == nil || shown.GetResourceVersion() == w.version) {
		return true // also a later version, and removing the last finalizer creates none
	}
	if w.refused {
		return !isOlder(w.version, shown.GetResourceVersion())
	}
	return isOlder(shown.GetResourceVersion(), w.version)
}

func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

func (c *Cluster) note(key Key, w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.writes[key]; !ok || !isOlder(w.version, last.version) {
		c.writes[key] = w
	}
}

func (c *Cluster) lastWrite(key Key) (last write, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok = c.writes[key]
	return last, ok
}

// forgetWrite forgets the write, unless another pass has written since.
func (c *Cluster) forgetWrite(key Key, w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes[key] == w {
		delete(c.writes, key)
	}
}

// written returns the keys of the owner's children of a kind whose last write the watch has
// not shown yet.
func (c *Cluster) written(kind schema.GroupVersionKind, owner types.UID) sets.Set[Key] {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := sets.New[Key]()
	for key, w := range c.writes {
		if key.Kind == kind && w.owner == owner {
			found.Insert(key)
		}
	}
	return found
}
