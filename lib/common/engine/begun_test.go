package engine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// TestBegunIsAwaitedByALaterStage: what comes in between may be what the child waits for.
func TestBegunIsAwaitedByALaterStage(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: append([]client.Object{&appsv1.StatefulSet{}}, owns...), Stages: []stage{
		build("Begun", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Begun(statefulSet(cr))}
		}),
		build("Between", func(cr *widget.Widget, in engine.Inputs) []engine.Child {
			begun, _ := engine.Get[*appsv1.StatefulSet](in, cr.Name)
			return []engine.Child{configMap(cr.Name, string(begun.UID))}
		}),
		{Condition: "Complete", Needs: func(cr *widget.Widget) []engine.Need {
			return []engine.Need{engine.Complete(&appsv1.StatefulSet{ObjectMeta: metaOf("", cr.Name)})}
		}},
	}})
	cr := w.widget("begun", widget.Spec{Replicas: new(int32(1))})
	w.Eventually(w.condition(cr, "Complete")).Should(HavePrefix("False Progressing: StatefulSet begun"))
	w.Expect(w.condition(cr, "Begun")()).To(HavePrefix("True"))
	w.Expect(w.condition(cr, "Between")()).To(HavePrefix("True"))
	set, between := &appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)}, w.configMap(cr.Name)
	w.must(w.get(set))
	w.must(w.get(between))
	w.Expect(between.Data).To(HaveKeyWithValue("text", string(set.UID)), "made knowing what was begun")
	w.change(cr, func(s *widget.Spec) { s.Replicas = new(int32(0)) })
	w.awaitReady(cr)
}
