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
	c := New(Options{Scheme: scheme, Cached: cache, API: api, ReadTimeout: time.Minute})
	c.queue = queued(t)
	return c
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
	held      bool   // is being deleted, and has a finalizer
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
	if s.held {
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: time.Now()}, []string{"asterism.dev/test"}
	}
	pod.DeepCopyInto(into.(*corev1.Pod)) //nolint:forcetypeassert // nothing else is read
	return nil
}

// TestAnAnswerCountsUntilTheWatchHasShownIt, and is removed then, because it is as large as
// the object.
func TestAnAnswerCountsUntilTheWatchHasShownIt(t *testing.T) {
	for _, test := range []struct {
		name   string
		cached string // version that the cache has
		held   bool   // the cached version has a finalizer
		write  func(*Cluster)
		want   string // version; "deleted" for a pod that is being deleted, "" for none
		stays  bool   // the write is still remembered
	}{
		{name: "the watch is behind", cached: "5", write: func(c *Cluster) { c.NoteWrite(key, podOf("7")) }, want: "7", stays: true},
		{name: "the watch has caught up", cached: "7", write: func(c *Cluster) { c.NoteWrite(key, podOf("7")) }, want: "7"},
		{name: "another client has written since", cached: "9", write: func(c *Cluster) { c.NoteWrite(key, podOf("7")) }, want: "9"},
		{name: "created, not shown yet", write: func(c *Cluster) { c.NoteCreate(key, podOf("7")) }, want: "7", stays: true},
		{name: "deleted, and not shown yet", cached: "7", write: func(c *Cluster) { c.NoteDelete(key, podOf("7")) }, want: "deleted", stays: true},
		{name: "created and deleted, neither is shown", write: func(c *Cluster) { c.NoteCreate(key, podOf("7")); c.NoteDelete(key, podOf("7")) }, want: "deleted", stays: true},
		{name: "last finalizer removed, which creates no version", cached: "7", held: true, write: func(c *Cluster) { c.NoteDelete(key, podOf("7")) }, want: "deleted", stays: true},
		{name: "deleted, and an older version shown", cached: "6", write: func(c *Cluster) { c.NoteDelete(key, podOf("7")) }, want: "deleted", stays: true},
		{name: "deleted, and shown", write: func(c *Cluster) { c.NoteDelete(key, podOf("7")) }},
		{name: "an older answer comes late", cached: "5", write: func(c *Cluster) { c.NoteWrite(key, podOf("7")); c.NoteWrite(key, podOf("6")) }, want: "7", stays: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := cluster(t, &podReader{version: test.cached, held: test.held}, &podReader{})
			test.write(c)
			found, err := c.Freshest(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred())
			switch test.want {
			case "":
				g.Expect(found).To(BeNil())
			case "deleted":
				g.Expect(found.GetDeletionTimestamp()).NotTo(BeNil())
				g.Expect(found.GetFinalizers()).To(BeEmpty())
			default:
				g.Expect(found.GetResourceVersion()).To(Equal(test.want))
			}
			g.Expect(c.writes).To(HaveLen(map[bool]int{true: 1}[test.stays]))
		})
	}
}

// TestAPassForgetsTheAnswerThatItDoesNotLookAt: the event of a deletion may come before the
// answer, and no pass may read the name again.
func TestAPassForgetsTheAnswerThatItDoesNotLookAt(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{version: "7"}, &podReader{})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "owner"}}
	v := c.View(request, "owner")
	v.look(key)
	c.wake(pods, podOf("8"))
	c.NoteDelete(key, podOf("7"))
	v.Close()
	g.Expect(c.writes).To(HaveLen(1))
	c.View(request, "owner").Close()
	g.Expect(c.writes).To(BeEmpty())
}

// TestAnEventForgetsTheAnswer: the answers of ten thousand objects would need much memory.
func TestAnEventForgetsTheAnswer(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, &podReader{}, &podReader{})
	c.NoteWrite(key, podOf("7"))
	c.wake(pods, podOf("6"))
	g.Expect(c.writes).To(HaveLen(1))
	c.wake(pods, podOf("6"), podOf("7"))
	g.Expect(c.writes).To(BeEmpty())
}

// TestReadsAreNotOlderThanWrites, although the answer is removed when an event has shown it.
func TestReadsAreNotOlderThanWrites(t *testing.T) {
	g := NewWithT(t)
	cache := &podReader{version: "5"}
	c := cluster(t, cache, nil)
	cache.meanwhile = func() { c.wake(pods, podOf("7")) }
	c.NoteWrite(key, podOf("7"))
	found, err := c.Freshest(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.GetResourceVersion()).To(Equal("7"))
	g.Expect(c.writes).To(BeEmpty())
}
