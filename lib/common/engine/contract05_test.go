package engine_test

import (
	"context"
	"reflect"
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
		"keeps fields that a user has removed": {
			seam:   func(s *engine.Seam) { s.Live = keepingReader{s.Live} },
			caught: `a field of a former spec`,
		},
	}}.test(t)
}

func contract05(w *world) {
	w.judgesChildren()
	w.judgesRollouts()
	w.judgesTheNewestSpec()
}

// judgesTheNewestSpec checks that a field that a user removes while the status is written is
// absent in the next pass, also if the watch is behind.
func (w *world) judgesTheNewestSpec() {
	w.t.Helper()
	frozen, writing := &frozenReader{}, &hooks{}
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("ConfigReady")}}, func(s *engine.Seam) {
		frozen.Reader = s.Cached
		s.Cached = frozen
		s.Cache = filteredCache{s.Cache, frozen.hears}
		s.Client = statusClient{s.Client, func(ctx context.Context, next client.SubResourceWriter, cr *widget.Widget, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			writing.run(cr.Name)
			return next.Patch(ctx, cr, patch, opts...)
		}}
	})
	cr := w.widget("newest", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.pass(cr)
	config := w.configMap(cr.Name)
	present := func() *widget.Widget { // a read into an existing object keeps removed fields
		now := &widget.Widget{ObjectMeta: metaOf(w.namespace, cr.Name)}
		w.must(w.get(now))
		return now
	}
	writing.apply(cr.Name, func() {
		cr := present()
		frozen.freeze(cr)
		w.change(cr, func(s *widget.Spec) { s.Text = "" })
		w.annotate(config, "note", "starts the next pass")
	})
	w.change(cr, func(s *widget.Spec) { s.Text = "second" }) // which the child has for a moment
	w.decides(func() string {
		if now := present(); now.Status.ObservedGeneration < 3 {
			return "is not reconciled yet"
		}
		return "text of the child: " + w.textOf(cr.Name)()
	}, Equal("text of the child: "), Equal("text of the child: second"), "a field of a former spec")
	frozen.thaw()
	w.pass(cr)
	w.awaitReady(cr)
	w.operator.Stop()
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
	w.sees(rack)
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
	shown client.Object
}

func (r *frozenReader) freeze(obj client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
}

func (r *frozenReader) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = nil
}

// hears tells whether an event is delivered: a watch that is behind delivers none.
func (r *frozenReader) hears(event any) bool {
	obj, _ := event.(client.Object)
	return obj == nil || !r.isShown(obj, obj.GetName())
}

func (r *frozenReader) isShown(obj client.Object, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown != nil && reflect.TypeOf(obj) == reflect.TypeOf(r.shown) && name == r.shown.GetName()
}

func (r *frozenReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !r.isShown(obj, key.Name) {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(r.shown.DeepCopyObject()).Elem())
	return nil
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

// keepingReader returns widgets with a field that a user has removed.
type keepingReader struct{ client.Reader }

func (r keepingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if cr, ok := obj.(*widget.Widget); ok && err == nil && cr.Spec.Text == "" {
		cr.Spec.Text = "second"
	}
	return err
}
