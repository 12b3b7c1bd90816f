package engine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// gated is a service whose walk ends at its first stage for some texts.
func gated() service {
	return service{Name: owner, Owns: owns, Stages: []stage{
		{Condition: "Open", Build: func(_ *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			if string(in.ConfigMap("gate")["text"]) == "closed" {
				return nil, engine.Wait("the gate is closed")
			}
			return nil, nil
		}, Needs: func(*widget.Widget) []engine.Need { return []engine.Need{engine.ConfigMap("gate").Optional()} }},
		configMaps("ConfigReady"),
		build("MoreReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name+"-more", "")}
		}),
		{Condition: "Checked"},
	}}
}

func (w *world) setGate(text string) {
	w.t.Helper()
	gate := w.configMap("gate")
	if w.get(gate) != nil {
		gate.Data = map[string]string{"text": text}
		w.create(gate)
		return
	}
	gate.Data = map[string]string{"text": text}
	w.must(w.client.Update(w.ctx, gate))
}

// TestConditionsOfAnOlderGenerationAreNotReached: they describe another spec.
func TestConditionsOfAnOlderGenerationAreNotReached(t *testing.T) {
	w := newTestWorld(t)
	start(w, gated())
	cr := w.widget("older", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Open")).Should(HavePrefix("False Waiting"))
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"), "of the same generation")
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	for _, condition := range []string{"ConfigReady", "MoreReady", "Checked"} {
		w.Eventually(w.condition(cr, condition)).Should(HavePrefix("Unknown NotReached"), condition)
	}
	w.setGate("open")
	w.awaitReady(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal("second"))
}

// TestConditionsAfterADeletedChildAreUnknown; a restart of the operator changes no condition.
func TestConditionsAfterADeletedChildAreUnknown(t *testing.T) {
	w := newTestWorld(t)
	start(w, gated())
	cr := w.widget("gone", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Open")).Should(HavePrefix("False Waiting"))
	w.operator.Stop()
	start(w, gated())
	w.pass(cr)
	for _, condition := range []string{"ConfigReady", "MoreReady"} {
		w.Expect(w.condition(cr, condition)()).To(HavePrefix("True"), condition)
	}
	w.must(w.client.Delete(w.ctx, w.configMap(cr.Name+"-more")))
	for _, condition := range []string{"MoreReady"} {
		w.Eventually(w.condition(cr, condition)).Should(And(HavePrefix("Unknown Gone"), ContainSubstring("ConfigMap/gone-more is gone")), condition)
	}
	w.Expect(w.condition(cr, "ConfigReady")()).To(HavePrefix("True"), "its children exist")
	w.operator.Stop()
	start(w, gated())
	w.pass(cr)
	w.Expect(w.condition(cr, "MoreReady")()).To(HavePrefix("Unknown Gone"), "also after a restart")
	w.setGate("open")
	w.awaitReady(cr)
}

// TestAKeptChildIsGoneOnlyIfItExisted: a Kept child may never have existed.
func TestAKeptChildIsGoneOnlyIfItExisted(t *testing.T) {
	w := newTestWorld(t)
	s := gated()
	s.Stages[2] = build("MoreReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		more, never := configMap(cr.Name+"-more", ""), configMap(cr.Name+"-never", "")
		if cr.Spec.Text == "made" {
			return []engine.Child{more}
		}
		return []engine.Child{engine.Kept(more), engine.Kept(never)}
	})
	start(w, s)
	cr := w.widget("keeps", widget.Spec{Text: "made"})
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "kept" })
	w.awaitReady(cr)
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Open")).Should(HavePrefix("False Waiting"))
	w.pass(cr)
	w.Expect(w.condition(cr, "MoreReady")()).To(HavePrefix("True"), "no child was deleted")
	w.must(w.client.Delete(w.ctx, w.configMap(cr.Name+"-more")))
	w.Eventually(w.condition(cr, "MoreReady")).Should(ContainSubstring("ConfigMap/keeps-more is gone"))
}

// TestWorkloadsOfUnreachedStagesAreJudgedAgain, because the state of their pods changes.
func TestWorkloadsOfUnreachedStagesAreJudgedAgain(t *testing.T) {
	w := newTestWorld(t)
	s := gated()
	s.Stages[1] = rackStage()
	s.Owns = append([]client.Object{&widget.Rack{}}, owns...)
	start(w, s)
	cr := w.widget("again", widget.Spec{})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(rack) }).Should(Succeed())
	w.play(rack, "True", "")
	w.awaitReady(cr)
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Open")).Should(HavePrefix("False Waiting"))
	w.play(rack, "False", "a shelf broke")
	w.Eventually(w.condition(cr, "RackReady")).Should(And(HavePrefix("False Progressing"), ContainSubstring("a shelf broke")))
	w.play(rack, "True", "")
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("True"))
}

// TestUnreachedBecomesTrueOnlyIfItWas: an unreached stage that was never complete stays
// Unknown or False.
func TestUnreachedBecomesTrueOnlyIfItWas(t *testing.T) {
	w := newTestWorld(t)
	s := gated()
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "never")}
	s.Stages[1] = rackStage()
	s.Stages[1].Continue = true
	s.Stages[3] = stage{Condition: "Checked", Needs: func(*widget.Widget) []engine.Need {
		return []engine.Need{engine.Existing(&widget.Rack{ObjectMeta: metaOf("", "never")}).Where(func(client.Object) error {
			return engine.WaitAs(engine.ReasonProgressing, "it is not painted")
		})}
	}}
	s.Owns = append([]client.Object{&widget.Rack{}}, owns...)
	start(w, s)
	cr := w.widget("never", widget.Spec{})
	w.Eventually(w.condition(cr, "Checked")).Should(HavePrefix("False Progressing"))
	w.Expect(w.condition(cr, "RackReady")()).To(HavePrefix("False Progressing"))
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Checked")).Should(HavePrefix("Unknown NotReached"))
	w.play(rack, "True", "")
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("Unknown NotReached"))
	w.setGate("open")
	w.Eventually(w.condition(cr, "RackReady")).Should(HavePrefix("True"))
}
