package engine_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// judged refuses the text "bad" of its child, and remarks upon every other text.
func judged() service {
	const first, second = "FirstReady", "SecondReady"
	stages := []stage{
		build(first, func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name, cr.Spec.Text)}
		}),
		build(second, func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name+"-second", cr.Spec.Text)}
		}),
	}
	stages[0].Judge = func(cr *widget.Widget, in engine.Inputs) (string, error) {
		if text := in.ConfigMap(cr.Name)["text"]; string(text) != "bad" {
			return "the text is " + string(text), nil
		}
		return "", engine.Stop("BadText", "the text is bad")
	}
	return service{Name: owner, Owns: owns, Stages: stages}
}

func TestJudgeDecidesAboutCompleteChildren(t *testing.T) {
	w := newTestWorld(t)
	start(w, judged())
	cr := w.widget("judged", widget.Spec{Text: "good"})
	w.awaitReady(cr)
	w.Eventually(w.condition(cr, "FirstReady")).Should(Equal("True Complete: the text is good"))

	w.change(cr, func(s *widget.Spec) { s.Text = "bad" })
	w.Eventually(w.condition(cr, "FirstReady")).Should(Equal("False BadText: the text is bad"))
	w.Eventually(w.condition(cr, "Stalled")).Should(ContainSubstring("BadText"))
	w.Expect(w.textOf(cr.Name+"-second")()).To(Equal("good"), "the walk ends at the stage")

	w.change(cr, func(s *widget.Spec) { s.Text = "better" })
	w.awaitReady(cr)
	w.Eventually(w.condition(cr, "FirstReady")).Should(Equal("True Complete: the text is better"))
	w.Eventually(w.textOf(cr.Name + "-second")).Should(Equal("better"))
}
