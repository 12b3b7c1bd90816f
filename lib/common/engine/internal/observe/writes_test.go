package observe

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	pods = corev1.SchemeGroupVersion.WithKind("Pod")
	key  = Key{Kind: pods, NamespacedName: types.NamespacedName{Namespace: "n", Name: "o"}}
)

func podOf(version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "o", UID: "u", ResourceVersion: version}}
}

// cluster returns a Cluster with the two readers and without watches.
func cluster(t *testing.T, cache, api client.Reader) *Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(corev1.AddToScheme(scheme)).To(Succeed())
	c := New(Options{Scheme: scheme, Cached: cache, API: api, ReadTimeout: time.Minute, Discovery: podDiscovery{}})
	c.queue = queued(t)
	return c
}

type podDiscovery struct{}

func (podDiscovery) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "Pod", Namespaced: true}}}, nil
}

func queued(t *testing.T) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// podReader returns one version of the pod; "" for none.
type podReader struct {
	client.Reader
	version   string
	meanwhile func() // called during a read
}

func (s *podReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	version := s.version
	if s.meanwhile != nil {
		s.meanwhile()
	}
	if version == "" {
		return notFound()
	}
	pod := podOf(version)
	pod.DeepCopyInto(into.(*corev1.Pod)) //nolint:forcetypeassert // nothing else is read
	return nil
}

// TestNoReadIsOlderThanAWrite: while the watch is behind, the object is read from the API server.
func TestNoReadIsOlderThanAWrite(t *testing.T) {
	for _, test := range []struct {
		name   string
		cached string // version that the cache has
		live   string // version that the API server has
		write  func(*View)
		want   string // version; "" for none
		stays  bool   // the write is still remembered
	}{
		{name: "the watch is behind", cached: "5", live: "8", write: func(v *View) { v.NoteVersion(key, podOf("7")) }, want: "8", stays: true},
		{name: "the watch has a version that was refused", cached: "5", live: "8", write: func(v *View) { v.NoteRefused(key, podOf("5")) }, want: "8", stays: true},
		{name: "the watch has a newer version than was refused", cached: "6", live: "8", write: func(v *View) { v.NoteRefused(key, podOf("5")) }, want: "6"},
		{name: "the watch has caught up", cached: "7", live: "8", write: func(v *View) { v.NoteVersion(key, podOf("7")) }, want: "7"},
		{name: "another client has written since", cached: "9", write: func(v *View) { v.NoteVersion(key, podOf("7")) }, want: "9"},
		{name: "created, not shown yet", live: "7", write: func(v *View) { v.NoteVersion(key, podOf("7")) }, want: "7", stays: true},
		{name: "created and deleted by another client, neither is shown", write: func(v *View) { v.NoteVersion(key, podOf("7")) }},
		{name: "deleted, and not shown yet", cached: "7", live: "8", write: func(v *View) { v.NoteDelete(key, podOf("7")) }, want: "8", stays: true},
		{name: "created and deleted, neither is shown", live: "8", write: func(v *View) { v.NoteVersion(key, podOf("7")); v.NoteDelete(key, podOf("7")) }, want: "8", stays: true},
		{name: "last finalizer removed, which creates no version", cached: "7", write: func(v *View) { v.NoteDelete(key, podOf("7")) }, stays: true},
		{name: "deleted, and a version between the read and the deletion shown", cached: "8", live: "9", write: func(v *View) { v.NoteDelete(key, podOf("7")) }, want: "9", stays: true},
		{name: "deleted, and an older version shown", cached: "6", live: "8", write: func(v *View) { v.NoteDelete(key, podOf("7")) }, want: "8", stays: true},
		{name: "deleted, and shown", write: func(v *View) { v.NoteDelete(key, podOf("7")) }},
		{name: "an older answer comes late", cached: "6", live: "7", write: func(v *View) { v.NoteVersion(key, podOf("7")); v.NoteVersion(key, podOf("6")) }, want: "7", stays: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := cluster(t, &podReader{version: test.cached}, &podReader{version: test.live})
			test.write(c.View(reconcile.Request{}, "owner"))
			found, err := c.Current(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			version := ""
			if found != nil {
				version = found.GetResourceVersion()
			}
			g.Expect(version).To(Equal(test.want))
			g.Expect(c.writes).To(HaveLen(map[bool]int{true: 1}[test.stays]))
		})
	}
}

// TestAPassReadsOneVersion of an object, and its own writes.
func TestAPassReadsOneVersion(t *testing.T) {
	g := NewWithT(t)
	cached := &podReader{version: "5"}
	c := cluster(t, cached, &podReader{})
	v := c.View(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "owner"}}, "owner")
	read := func() client.Object {
		found, err := v.Get(t.Context(), key)
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	g.Expect(read().GetResourceVersion()).To(Equal("5"))
	cached.version = "6"
	g.Expect(read().GetResourceVersion()).To(Equal("5"))
	v.NoteWrite(key, podOf("7"))
	g.Expect(read().GetResourceVersion()).To(Equal("7"))
	v.NoteDelete(key, podOf("7"))
	g.Expect(read().GetDeletionTimestamp()).NotTo(BeNil())
}

// TestAPassForgetsTheWriteThatItDoesNotLookAt: the event of a deletion may come before the
// answer, and no pass may read the name again.
func TestAPassForgetsTheWriteThatItDoesNotLookAt(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{version: "7"}, &podReader{})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "owner"}}
	v := c.View(request, "owner")
	v.dependOn(key)
	c.wake(c.queue, pods, podOf("8"))
	v.NoteDelete(key, podOf("7"))
	v.Close()
	g.Expect(c.writes).To(HaveLen(1))
	c.View(request, "owner").Close()
	g.Expect(c.writes).To(BeEmpty())
}

// TestAnEventForgetsTheWrite: the writes of ten thousand objects would need memory.
func TestAnEventForgetsTheWrite(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{}, &podReader{})
	c.View(reconcile.Request{}, "owner").NoteVersion(key, podOf("7"))
	c.wake(c.queue, pods, podOf("6"))
	g.Expect(c.writes).To(HaveLen(1))
	c.wake(c.queue, pods, podOf("6"), podOf("7"))
	g.Expect(c.writes).To(BeEmpty())
}

// TestReadsAreNotOlderThanWrites, although the write is forgotten when an event has shown it.
func TestReadsAreNotOlderThanWrites(t *testing.T) {
	g := NewWithT(t)
	cache := &podReader{version: "5"}
	c := cluster(t, cache, &podReader{version: "7"})
	cache.meanwhile = func() { c.wake(c.queue, pods, podOf("7")) }
	c.View(reconcile.Request{}, "owner").NoteVersion(key, podOf("7"))
	found, err := c.Current(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.GetResourceVersion()).To(Equal("7"))
	g.Expect(c.writes).To(BeEmpty())
}
