package engine

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestAnswersAreRememberedWhileTheWatchIsBehind and no longer: an answer is as large as
// the object, and ten thousand objects may be on their way at once.
func TestAnswersAreRememberedWhileTheWatchIsBehind(t *testing.T) {
	refused := errors.New("refused")
	for _, test := range []struct {
		name       string
		during     []string // versions that the watch shows before the answer comes
		deleted    bool     // the last of these is a deletion
		answer     string
		err        error
		remembered bool
	}{
		{name: "the answer comes first", answer: "7", remembered: true},
		{name: "the watch shows what was before", during: []string{"5", "6"}, answer: "7", remembered: true},
		{name: "the watch is first", during: []string{"6", "7"}, answer: "7"},
		{name: "somebody else has written since", during: []string{"8"}, answer: "7"},
		{name: "it is gone again", during: []string{"7", "8"}, deleted: true, answer: "7"},
		{name: "refused", err: refused},
		{name: "made, but not understood", answer: "7", err: refused, remembered: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			o := newObserver(standard, runtime.NewScheme(), nil, nil, nil, nil)
			o.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer o.queue.ShutDown()
			key := objectKey{gvk: configMapGVK, NamespacedName: types.NamespacedName{Namespace: "n", Name: "o"}}
			show := func(version string, deleted bool) {
				shown := &corev1.ConfigMap{}
				shown.Namespace, shown.Name, shown.ResourceVersion = key.Namespace, key.Name, version
				o.wake(key.gvk, shown, deleted)
			}
			err := o.ask(key, func() (written, error) {
				for i, version := range test.during {
					show(version, test.deleted && i == len(test.during)-1)
				}
				return written{version: test.answer}, test.err
			})
			if test.err == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(test.err))
			}
			g.Expect(o.asked).To(BeEmpty())
			_, remembered := o.written[key]
			g.Expect(remembered).To(Equal(test.remembered))
			show("7", false)
			g.Expect(o.written).To(BeEmpty())
		})
	}
}

// slowCache shows a version to handlers while somebody is given the one before it.
type slowCache struct {
	client.Reader
	meanwhile func()
}

func (c slowCache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	into.SetResourceVersion("5")
	c.meanwhile()
	return nil
}

// TestCopiesAreNeverOlderThanWhatWeWrote, although an answer is forgotten as soon as
// the watch of what is reconciled shows it.
func TestCopiesAreNeverOlderThanWhatWeWrote(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	pods := corev1.SchemeGroupVersion.WithKind("Pod")
	key := objectKey{gvk: pods, NamespacedName: types.NamespacedName{Namespace: "n", Name: "o"}}
	ours := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "o", ResourceVersion: "7"}}
	cache := &slowCache{meanwhile: func() {}}
	o := newObserver(standard, scheme, nil, nil, cache, nil)
	cache.meanwhile = func() { g.Expect(o.notice(pods).Update(event.UpdateEvent{ObjectNew: ours})).To(BeTrue()) }
	g.Expect(o.ask(key, func() (written, error) { return answered(ours), nil })).To(Succeed())
	found, err := o.freshest(t.Context(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.GetResourceVersion()).To(Equal("7"))
	g.Expect(o.written).To(BeEmpty())
}
