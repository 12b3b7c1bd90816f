package engine

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
		{name: "it is gone again", during: []string{"8"}, deleted: true, answer: "7"},
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
