package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract11Pause(t *testing.T) {
	contract{check: contract11, mutants: map[string]mutant{
		"does not see the pause": {
			seam:   func(s *engine.Seam) { s.Cached, s.Live = sleepless{s.Cached}, sleepless{s.Live} },
			caught: `the object is paused`,
		},
		"pauses a child as the owner of its other fields": {
			seam:   func(s *engine.Seam) { s.Client = pauseByOwner{s.Client} },
			caught: `text of the paused child`,
		},
		"does not know whether it has paused a child": {
			seam:   func(s *engine.Seam) { s.Cached = forgetful{s.Cached} },
			caught: `sent while paused`,
		},
	}}.test(t)
}

// pausable counts the calls of the service in contract11, and answers for its users.
type pausable struct {
	calls, removed atomic.Int32
	down           atomic.Bool
}

func (o *pausable) service() service {
	often := func(*widget.Widget) time.Duration { return time.Millisecond }
	count := func(n *atomic.Int32) func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
		return func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
			n.Add(1)
			return nil, nil
		}
	}
	return service{
		Name:     owner,
		Stages:   []stage{{Condition: "Registered", Do: count(&o.calls), Every: often}, configMaps("ConfigReady"), rackStage()},
		Teardown: []stage{{Condition: "Unregistered", Do: count(&o.removed)}},
		Available: &stage{
			Do: func(context.Context, *widget.Widget, engine.Inputs) (engine.Observed, error) {
				if o.down.Load() {
					return nil, errors.New("no answer")
				}
				return nil, nil
			},
			Every: often,
		},
		Owns: append([]client.Object{&widget.Rack{}}, owns...),
	}
}

func contract11(w *world) {
	o := &pausable{}
	start(w, o.service())
	cr := w.widget("paused", widget.Spec{Text: "first"})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	incident := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"test.asterism.dev/v1alpha1","kind":"Rack","metadata":{"labels":{"incident":"1"}}}`))
	w.must(w.client.Patch(w.ctx, rack, incident, client.FieldOwner("incident-pause")))

	w.pause(cr)
	w.must(w.get(rack))
	w.Expect(rack.Spec).To(Equal(widget.Spec{Text: "first", Pause: rack.Spec.Pause}), "text of the paused child")
	w.Expect(rack.IsPaused()).To(BeTrue(), "the child is paused as well")
	w.changesNothing(cr, o)
	w.operator.Stop()
	start(w, o.service())
	w.changesNothing(cr, o)
	w.pausesAgain(rack)

	w.resume(cr)
	w.Eventually(w.textOf(cr.Name)).Should(Equal("second"), "the new spec is applied")
	w.Eventually(func() widget.Spec { w.must(w.get(rack)); return rack.Spec }).Should(Equal(widget.Spec{Text: "second"}))
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.keepsAPauseOfAUser(cr, rack)

	w.pause(cr)
	w.must(w.client.Delete(w.ctx, cr))
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue(), "a paused object is deleted")
	w.Expect(o.removed.Load()).To(BeEquivalentTo(1), "the teardown")
	w.createsPaused()
}

// pause sets spec.paused, and returns after a complete pass.
func (w *world) pause(cr *widget.Widget) {
	w.t.Helper()
	w.change(cr, func(s *widget.Spec) { s.Paused = true })
	w.decides(w.condition(cr, "Ready"), HavePrefix("Unknown Paused: nothing is changed or checked"), HavePrefix("True"), "the object is paused")
	w.pass(cr)
}

// resume removes spec.paused, and returns after a complete pass.
func (w *world) resume(cr *widget.Widget) {
	w.t.Helper()
	w.change(cr, func(s *widget.Spec) { s.Paused = false })
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False"))
	w.pass(cr)
}

// changesNothing checks that a new spec, drift and a deletion of a child cause no write except of
// the status, and that only the condition Available is known.
func (w *world) changesNothing(cr *widget.Widget, o *pausable) {
	w.t.Helper()
	config := w.configMap(cr.Name)
	w.operator.Requests.Reset()
	calls := o.calls.Load()
	if w.get(config) == nil {
		w.must(w.client.Delete(w.ctx, config))
	}
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("Unknown Paused"))
	w.pass(cr)
	w.Expect(w.condition(cr, "Registered")()).To(Equal("Unknown Paused: the object is paused"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(Equal("Unknown Paused: the object is paused"))
	for _, request := range w.operator.Requests.Writes() {
		w.Expect(request.String()).To(HavePrefix("patch widgets/status"), "sent while paused")
	}
	w.Expect(w.gone(config)).To(BeTrue())
	w.Expect(o.calls.Load()).To(Equal(calls), "calls of Do")

	o.down.Store(true)
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("False Error: no answer"))
	o.down.Store(false)
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("True"))
}

// pausesAgain checks that a child does not go on before its owner does.
func (w *world) pausesAgain(rack *widget.Rack) {
	w.t.Helper()
	w.setPaused(rack, "null")
	w.Eventually(func() bool { w.must(w.get(rack)); return rack.IsPaused() }).Should(BeTrue(), "paused again")
}

// keepsAPauseOfAUser checks that a child which a user has paused stays paused, and that its owner
// tells so.
func (w *world) keepsAPauseOfAUser(cr *widget.Widget, rack *widget.Rack) {
	w.t.Helper()
	w.setPaused(rack, "true")
	w.pause(cr)
	w.resume(cr)
	w.Eventually(func() string { w.must(w.get(rack)); return fmt.Sprint(rack.GetManagedFields()) }).ShouldNot(ContainSubstring(owner + "-pause"))
	w.Expect(rack.IsPaused()).To(BeTrue(), "paused by a user")
	w.playReason(rack, "Ready", "Unknown", engine.ReasonPaused, "by a user")
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Paused: Rack paused: by a user"))
}

// setPaused changes spec.paused of a child as a user.
func (w *world) setPaused(rack *widget.Rack, value string) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%s}}`, value))
	w.must(w.client.Patch(w.ctx, rack, patch, client.FieldOwner("other-client")))
}

func (w *world) createsPaused() {
	w.t.Helper()
	w.operator.Requests.Reset()
	cr := w.widget("new", widget.Spec{Text: "first", Pause: commonv1.Pause{Paused: true}})
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("Unknown Paused"))
	w.pass(cr)
	w.Expect(cr.Finalizers).To(BeEmpty())
	w.Expect(w.gone(w.configMap(cr.Name))).To(BeTrue())
	w.operator.Stop()
}

// TestAPanicOfAProofIsACondition of a paused object as well.
func TestAPanicOfAProofIsACondition(t *testing.T) {
	w := newTestWorld(t)
	var broken atomic.Bool
	o := (&pausable{}).service()
	o.Proof = func(*widget.Widget, client.Object) bool {
		if broken.Load() {
			panic("the proof is broken") //nolint:forbidigo // the engine recovers
		}
		return true
	}
	start(w, o)
	cr := w.widget("paused", widget.Spec{Text: "first"})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	broken.Store(true)
	w.change(cr, func(s *widget.Spec) { s.Paused = true })
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Panic: the pause of children panicked: the proof is broken"))
	broken.Store(false)
}

// sleepless reads no widget as paused.
type sleepless struct{ client.Reader }

func (r sleepless) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if cr, ok := obj.(*widget.Widget); ok {
		cr.Spec.Paused = false
	}
	return err
}

// pauseByOwner sends every apply as the owner of the children.
type pauseByOwner struct{ client.Client }

func (c pauseByOwner) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.Client.Apply(ctx, obj, append(opts, client.FieldOwner(owner))...)
}

// forgetful reads Racks without their field owners.
type forgetful struct{ client.Reader }

func (r forgetful) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if rack, ok := obj.(*widget.Rack); ok {
		rack.SetManagedFields(nil)
	}
	return err
}

func (r forgetful) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Reader.List(ctx, list, opts...)
	if racks, ok := list.(*widget.RackList); ok {
		for i := range racks.Items {
			racks.Items[i].SetManagedFields(nil)
		}
	}
	return err
}
