package engine_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestNeedsThatAreNotWaitedFor(t *testing.T) {
	w := newTestWorld(t)
	nobody := schema.GroupVersionKind{Group: "nobody.example", Version: "v1", Kind: "Nothing"}
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "ConfigReady",
		Needs: func(cr *widget.Widget) []engine.Need {
			rack := &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
			return []engine.Need{
				engine.Cluster(), engine.Served(nobody).Optional(), engine.Existing(rack).Optional(),
				engine.AllOf(engine.Condition(rack, "Ready"), engine.ConfigMap("also", "key")).As("both"),
				engine.TrueFor(rack, "Ready", 2*time.Second).As("long"),
			}
		},
		Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
			text := "text of the rack: "
			if rack, ok := engine.Get[*widget.Rack](in, cr.Name); ok {
				text += rack.Spec.Text
			}
			if in.Met("both") {
				text += ", both"
			}
			if in.Met("long") {
				text += ", for long"
			}
			if in.Served(nobody) || in.Cluster() == "" {
				return nil, errors.New("that cannot be")
			}
			return []engine.Child{configMap(cr.Name, text)}, nil
		},
	}}})
	cr := w.widget("optional", widget.Spec{})
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: "))
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, cr.Name), Spec: widget.Spec{Text: "oak"}}
	w.create(rack)
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: oak"))
	also := w.configMap("also")
	also.Data = map[string]string{"key": "x"}
	w.create(also)
	w.play(rack, "True", "")
	w.Eventually(w.textOf(cr.Name)).Should(HavePrefix("text of the rack: oak, both"))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: oak, both, for long"))
	w.must(w.client.Delete(w.ctx, rack))
	w.Eventually(w.textOf(cr.Name)).Should(Equal("text of the rack: "))
	w.awaitReady(cr)
}

func TestAnyOfSaysEverythingOnce(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "InputsReady",
		Needs: func(*widget.Widget) []engine.Need {
			return []engine.Need{engine.AnyOf(
				engine.Secret("one", "key"), engine.AllOf(engine.Secret("one", "other-key")), engine.Secret("other"),
			)}
		},
	}}})
	cr := w.widget("once", widget.Spec{})
	w.Eventually(w.condition(cr, "InputsReady")).Should(Equal("False Waiting: Secret one does not exist; Secret other does not exist"))
}

// TestAnyOfWakesByItself: what only waits for time is not brought up by an event.
func TestAnyOfWakesByItself(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{
		Condition: "ConfigReady",
		Needs: func(cr *widget.Widget) []engine.Need {
			rack := &widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
			return []engine.Need{engine.AnyOf(
				engine.AllOf(engine.Condition(rack, "Ready"), engine.ConfigMap("never", "key")),
				engine.TrueFor(rack, "Ready", 6*time.Second), // later than progress is written
			)}
		},
		Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
			return []engine.Child{configMap(cr.Name, "late")}, nil
		},
	}}})
	rack := &widget.Rack{ObjectMeta: metaOf(w.namespace, "any")}
	w.create(rack)
	w.play(rack, "True", "")
	cr := w.widget("any", widget.Spec{})
	w.Eventually(w.condition(cr, "Ready")).Should(HavePrefix("False Waiting: "))
	w.awaitReady(cr)
}

func TestOutcomesOfABuilder(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Stages: []stage{{Condition: "Built", Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
		switch cr.Spec.Text {
		case "wait":
			return nil, engine.Wait("for %s", "rain")
		case "fail":
			return nil, engine.Fail("Unreachable", errors.New("no route"))
		case "error":
			return nil, errors.New("odd")
		}
		return []engine.Child{"not a child"}, nil
	}}}})
	for text, expected := range map[string]string{
		"wait": "False Waiting: for rain", "fail": "False Unreachable: no route", "error": "False Error: odd",
		"else": "False Error: string is neither an apply configuration nor an object",
	} {
		cr := w.widget(text, widget.Spec{Text: text})
		w.Eventually(w.condition(cr, "Ready")).Should(Equal(expected))
	}
}

// TestOnceDependsOnWhatItIsTold: the rest of the Job may change freely.
func TestOnceDependsOnWhatItIsTold(t *testing.T) {
	w := newTestWorld(t)
	enginetest.Kubelet{}.Start(t, w.namespace)
	start(w, service{Name: owner, Owns: []client.Object{&batchv1.Job{}, &corev1.ConfigMap{}}, Stages: []stage{
		build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Once(job(cr, cr.Name), cr.Spec.SecretName)}
		}),
		configMaps("ConfigReady"),
	}})
	cr := w.widget("depends", widget.Spec{Text: "first", SecretName: "one"})
	w.awaitReady(cr)
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.Eventually(w.textOf(cr.Name)).Should(Equal("second"))
	w.awaitReady(cr)
	w.Expect(w.created(cr.Name)).To(Equal(1))
	w.change(cr, func(s *widget.Spec) { s.SecretName = "other" })
	w.Eventually(func() int { return w.created(cr.Name) }).Should(Equal(2))
	w.awaitReady(cr)
}

// TestAvailableOutlivesAnEdit: what serves users goes on while a new spec has not
// been seen.
func TestAvailableOutlivesAnEdit(t *testing.T) {
	w := newTestWorld(t)
	named := func(name string) *widget.Rack { return &widget.Rack{ObjectMeta: metaOf(w.namespace, name)} }
	start(w, service{
		Name: owner,
		Available: &stage{Needs: func(cr *widget.Widget) []engine.Need {
			return []engine.Need{engine.Condition(named(cr.Name), "Available")}
		}},
		Stages: []stage{configMaps("ConfigReady")},
	})
	rack := named("serves")
	w.create(rack)
	w.playCondition(rack, "Available", "True", "")
	cr := w.widget("serves", widget.Spec{})
	w.Eventually(w.condition(cr, "Available")).Should(HavePrefix("True"))
	rack.Spec.Text = "edited"
	w.must(w.client.Update(w.ctx, rack))
	w.Expect(rack.Status.ObservedGeneration).NotTo(Equal(rack.Generation))
	w.change(cr, func(s *widget.Spec) { s.Text = "looked at again" })
	w.awaitReady(cr)
	w.Expect(w.condition(cr, "Available")()).To(HavePrefix("True"))
}
