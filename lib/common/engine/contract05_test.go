package engine_test

import (
	"context"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract05HonestReadiness(t *testing.T) {
	contract{check: contract05, mutants: map[string]mutant{
		"believes a cache that is behind its own writes": {
			seam:   func(s *engine.Seam) { s.Client = versionlessClient{s.Client} },
			caught: `the last own write`,
		},
		"accepts Ready of an older generation of a child": {
			seam: func(s *engine.Seam) {
				s.Cached = changingRacks{s.Cached}
			},
			caught: `of an older generation`,
		},
	}}.test(t)
}

func contract05(w *world) {
	w.judgesChildren()
	w.judgesRollouts()
}

// judgesRollouts checks that a rollout is judged by the newest revision, and not by a version
// before the engine's last write.
func (w *world) judgesRollouts() {
	var held gate
	frozen := &frozenReader{}
	enginetest.Kubelet{Ready: held.open}.Start(w.t, w.namespace)
	start(w, service{Name: owner, Stages: []stage{
		build("WorkloadReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child { return []engine.Child{statefulSet(cr)} }),
	}}, func(s *engine.Seam) {
		frozen.Reader = s.Cached
		s.Cached = frozen
		s.Cache = filteredCache{s.Cache, frozen.hears}
	})
	cr := w.widget("rollout", widget.Spec{Text: "A", Replicas: new(int32(2))})
	w.awaitReady(cr)
	set := &appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.must(w.get(set))
	w.Expect(set.Status.AvailableReplicas).To(Equal(int32(2)))

	held.close()
	frozen.freeze(set)
	w.change(cr, func(s *widget.Spec) { s.Text = "B" })
	w.decides(w.condition(cr, "Ready"), HavePrefix("False Progressing: StatefulSet rollout"), HavePrefix("True"), "the last own write is not rolled out")
	w.change(cr, func(s *widget.Spec) { s.Text = "A" })
	w.Eventually(func() int64 { _ = w.get(cr); return cr.Status.ObservedGeneration }).Should(Equal(int64(3)))
	w.must(w.get(set))
	w.Expect(set.Spec.Template.Annotations).To(HaveKeyWithValue("text", "A"), "the last own write")
	frozen.thaw()
	held.release()
	w.pass(cr)
	w.awaitReady(cr)
	w.operator.Stop()
}

// judgesChildren checks that a child of an Asterism kind is judged by Ready of its newest
// generation.
func (w *world) judgesChildren() {
	start(w, service{Name: owner, Stages: []stage{build("RackReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}, Spec: widget.Spec{Text: cr.Spec.Text}}}
	})}})
	cr := w.widget("parent", widget.Spec{Text: "first"})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("False Progressing: Rack parent"))
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(func() string { _ = w.get(rack); return rack.Spec.Text }).Should(Equal("second"))
	w.pass(cr)
	w.Expect(w.condition(cr, "RackReady")()).To(HavePrefix("False Progressing: Rack parent: its operator has not seen generation 2"), "a Ready of an older generation")
	w.play(rack, "False", "it has no shelf")
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Waiting: Rack parent: it has no shelf"))
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.operator.Stop()
}

// play reports Ready like the rack's operator.
func (w *world) play(rack *widget.Rack, ready metav1.ConditionStatus, message string) {
	w.t.Helper()
	w.playCondition(rack, "Ready", ready, message)
}

func (w *world) playCondition(rack *widget.Rack, condition string, status metav1.ConditionStatus, message string) {
	w.t.Helper()
	w.playReason(rack, condition, status, "Waiting", message)
}

func (w *world) playReason(rack *widget.Rack, condition string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	w.must(w.get(rack))
	before := rack.DeepCopy()
	rack.Status.ObservedGeneration = rack.Generation
	meta.SetStatusCondition(&rack.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: rack.Generation,
	})
	w.must(w.client.Status().Patch(w.ctx, rack, client.MergeFrom(before)))
}

// gate determines whether pods become ready.
type gate struct {
	mu     sync.Mutex
	closed bool
}

func (g *gate) open(*corev1.Pod) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// frozenReader returns an old version of one object.
type frozenReader struct {
	client.Reader
	mu    sync.Mutex
	shown *appsv1.StatefulSet
}

func (r *frozenReader) freeze(set *appsv1.StatefulSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = set.DeepCopy()
}

func (r *frozenReader) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = nil
}

// hears tells whether an event is delivered: a watch that is behind delivers none.
func (r *frozenReader) hears(event any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := event.(*appsv1.StatefulSet)
	return !ok || r.shown == nil
}

func (r *frozenReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if set, ok := obj.(*appsv1.StatefulSet); ok && r.shown != nil {
		r.shown.DeepCopyInto(set)
		return nil
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// versionlessClient hides the version of a write from the engine.
type versionlessClient struct{ client.Client }

func (c versionlessClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := c.Client.Apply(ctx, obj, opts...)
	if err == nil {
		bodyOf(obj).SetResourceVersion("1")
	}
	return err
}

// changingRacks returns racks whose status has always the newest observedGeneration.
type changingRacks struct{ client.Reader }

func (r changingRacks) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if rack, ok := obj.(*widget.Rack); ok && len(rack.Status.Conditions) > 0 {
		rack.Status.ObservedGeneration = rack.Generation
	}
	return err
}
