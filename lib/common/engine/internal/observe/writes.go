package observe

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerFor is the time for which the API server's answer to a write represents the object
// while the watch is behind. After that, the object is read from the API server, because an
// interrupted watch may miss the deletion of the object.
const answerFor = 2 * time.Second

// write is the controller's last write of an object. It is remembered until the watch shows
// this or a later version.
type write struct {
	version string        // the written version; for a deletion the deleted version
	answer  client.Object // the API server's answer; nil: not known
	created bool
	deleted bool
	at      time.Time
}

// isAhead tells whether the write is newer than the version that a watch shows, nil if the
// watch shows no object.
func (w write) isAhead(shown client.Object) bool {
	switch {
	case shown == nil: // the watch shows the deletion, or does not show the creation yet
		return !w.deleted || w.created
	case w.deleted && shown.GetResourceVersion() == w.version: // removing the last finalizer creates no version
		return shown.GetDeletionTimestamp() == nil || len(shown.GetFinalizers()) > len(w.answer.GetFinalizers())
	}
	return isOlder(shown.GetResourceVersion(), w.version)
}

func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// NoteWrite remembers the answer to a write of an object until its watch shows this version.
// The caller must not change the answer afterwards.
func (c *Cluster) NoteWrite(key Key, answer client.Object) {
	c.note(key, write{version: answer.GetResourceVersion(), answer: answer})
}

// NoteCreate is NoteWrite for an object that the watch does not show yet: this controller,
// or another client, has just created it.
func (c *Cluster) NoteCreate(key Key, answer client.Object) {
	c.note(key, write{version: answer.GetResourceVersion(), answer: answer, created: true})
}

// NoteVersion remembers a version whose content is not known.
func (c *Cluster) NoteVersion(key Key, version string) { c.note(key, write{version: version}) }

// NoteDelete remembers that the API server has accepted the deletion of an object.
func (c *Cluster) NoteDelete(key Key, obj client.Object) {
	answer := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	now := metav1.Now()
	answer.SetDeletionTimestamp(&now)
	last, _ := c.lastWrite(key)
	c.note(key, write{version: obj.GetResourceVersion(), answer: answer, deleted: true, created: last.created})
}

func (c *Cluster) note(key Key, w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.writes[key]; !ok || !isOlder(w.version, last.version) {
		w.at = time.Now()
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
	if c.writes[key].version == w.version {
		delete(c.writes, key)
	}
}

// created returns the objects of a kind that the controller has created for the owner, and
// that the watch does not show yet.
func (c *Cluster) created(kind schema.GroupVersionKind, owner types.UID) map[types.NamespacedName]client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[types.NamespacedName]client.Object{}
	for key, w := range c.writes {
		if key.Kind == kind && w.created && OwnerUID(w.answer) == owner {
			found[key.NamespacedName] = w.answer
		}
	}
	return found
}
