package engine_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// TestOutcomesThatNeedAnActionAreWarnings also checks that an event has a message once.
func TestOutcomesThatNeedAnActionAreWarnings(t *testing.T) {
	const sentence = "ask the administrator of the cluster"
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{
		Condition: "Allowed",
		Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
			return nil, map[string]error{
				"waits": engine.Wait(sentence), "denied": engine.WaitAs("Denied", sentence), "stopped": engine.Stop("Stopped", sentence),
				"proceeds": engine.ProgressAs("Phase", sentence), "held": engine.WaitAs(engine.ReasonPaused, sentence),
			}[cr.Name]
		},
	}}})
	for name, kind := range map[string]string{
		"waits": corev1.EventTypeNormal, "proceeds": corev1.EventTypeNormal, "held": corev1.EventTypeNormal, "denied": corev1.EventTypeWarning, "stopped": corev1.EventTypeWarning, "works": corev1.EventTypeNormal,
	} {
		cr := w.widget(name, widget.Spec{})
		w.Eventually(func() []eventsv1.Event { return w.eventsAbout(cr) }).ShouldNot(BeEmpty(), name)
		event := w.eventsAbout(cr)[0]
		w.Expect(event.Type).To(Equal(kind), name)
		w.Expect(strings.Count(event.Note, sentence)).To(BeNumerically("<=", 1), event.Note)
		w.Expect(event.Note).To(ContainSubstring("Ready is "), name)
	}
}

func (w *world) eventsAbout(obj client.Object) []eventsv1.Event {
	w.t.Helper()
	var all eventsv1.EventList
	w.must(w.client.List(w.ctx, &all, client.InNamespace(w.namespace)))
	var about []eventsv1.Event
	for _, event := range all.Items {
		if event.Regarding.UID == obj.GetUID() {
			about = append(about, event)
		}
	}
	return about
}
