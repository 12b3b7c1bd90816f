package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func notFound() error { return errors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name) }

// TestOnlyTheLastPassDecidesWhoIsWoken: a look at an object, or at all objects of a kind, in
// an earlier pass no longer wakes.
func TestOnlyTheLastPassDecidesWhoIsWoken(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{}, &podReader{})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "reader"}}
	woken := func() int {
		c.queue = queued(t)
		c.wake(c.queue, pods, podOf("1"))
		return c.queue.Len()
	}
	for _, looked := range []Key{key, {Kind: pods, NamespacedName: types.NamespacedName{Namespace: "n"}}, {Kind: pods}} {
		v := c.View(request, "reader")
		v.dependOn(looked)
		v.Close()
		g.Expect(woken()).To(Equal(1), "%v was looked at", looked)
		v = c.View(request, "reader")
		v.Close()
		g.Expect(woken()).To(Equal(0), "%v was not looked at", looked)
	}
	c.Forget(pods, request)
	g.Expect(c.Remembered()).To(Equal(0))
}

// TestOldAndNewOwnersAreWoken when the owner of an object changes.
func TestOldAndNewOwnersAreWoken(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{}, &podReader{})
	owned := func(uid string) client.Object {
		pod := podOf("1")
		pod.Labels = map[string]string{LabelOwnerUID: uid}
		return pod
	}
	for _, name := range []string{"old", "new"} {
		c.View(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: name}}, types.UID(name)).Close()
	}
	c.queue = queued(t)
	c.wake(c.queue, pods, owned("old"), owned("new"))
	g.Expect(c.queue.Len()).To(Equal(2))
}
