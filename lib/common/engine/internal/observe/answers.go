package observe

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Wrote remembers the answer to a write of an object, until its watch has shown
// that version. Nobody changes the answer afterwards.
func (c *Cluster) Wrote(key Key, answer client.Object) {
	c.remember(key, write{version: answer.GetResourceVersion(), answer: answer})
}

// Created is Wrote for an object that did not exist before.
func (c *Cluster) Created(key Key, answer client.Object) {
	c.remember(key, write{version: answer.GetResourceVersion(), answer: answer, created: true})
}

// Reached remembers a version of which the content is not known.
func (c *Cluster) Reached(key Key, version string) { c.remember(key, write{version: version}) }

// Deleted remembers that the API server has accepted the deletion of an object.
func (c *Cluster) Deleted(key Key, obj client.Object) {
	answer := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	now := metav1.Now()
	answer.SetDeletionTimestamp(&now)
	last, _ := c.lastWrite(key)
	c.remember(key, write{version: obj.GetResourceVersion(), answer: answer, deleted: true, created: last.created})
}

func (c *Cluster) remember(key Key, w write) {
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

// forgetWrite unless another pass has written since.
func (c *Cluster) forgetWrite(key Key, w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes[key].version == w.version {
		delete(c.writes, key)
	}
}

// created are the objects of a kind that the controller has created for the
// owner, and that the watch has not shown yet.
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

// forgetContent of a Secret or ConfigMap that is gone.
func (c *Cluster) forgetContent(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.contents, key)
}
