package engine_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract04StatusOncePerPass(t *testing.T) {
	contract{check: contract04, mutants: map[string]mutant{
		"writes the status twice": {
			seam:   func(s *engine.Seam) { s.Client = statusClient{s.Client, writeTwice} },
			caught: `one status for three stages`,
		},
		"gives observedGeneration only on success": {
			seam:   func(s *engine.Seam) { s.Client = statusClient{s.Client, forgetGeneration} },
			caught: `observedGeneration is 0`,
		},
		"believes that a stage without children has one": {
			seam:   func(s *engine.Seam) { s.Cached, s.Live = inventingReader{s.Cached}, inventingReader{s.Live} },
			caught: `nobody checks it`,
		},
	}}.test(t)
}

func contract04(w *world) {
	w.writesOnce()
	w.forgetsWhatNobodyChecks()
}

// forgetsWhatNobodyChecks checks that the condition of a stage without children does not stay
// True while the walk does not reach the stage.
func (w *world) forgetsWhatNobodyChecks() {
	w.t.Helper()
	start(w, gated())
	cr := w.widget("unchecked", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.setGate("closed")
	w.Eventually(w.condition(cr, "Open")).Should(HavePrefix("False Waiting"))
	w.pass(cr)
	w.Expect(w.condition(cr, "Checked")()).To(HavePrefix("Unknown NotReached"), "nobody checks it")
	w.Expect(w.condition(cr, "MoreReady")()).To(HavePrefix("True"), "its children exist")
	w.setGate("open")
	w.awaitReady(cr)
	w.operator.Stop()
}

func (w *world) writesOnce() {
	w.t.Helper()
	start(w, service{Name: owner, Stages: []stage{
		configMaps("First"),
		{Condition: "Second", Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
			switch cr.Spec.Text {
			case "stop":
				return nil, engine.Stop("Refused", "text: it says %q", cr.Spec.Text)
			case "panic":
				panic("the builder is broken") //nolint:forbidigo // as a bug would
			}
			return nil, nil
		}, Report: func(cr *widget.Widget, _ engine.Inputs) { cr.Status.Reported = cr.Spec.Text }},
		{Condition: "Third"},
	}})
	cr := w.widget("status", widget.Spec{Text: "fine"})
	w.awaitReady(cr)
	w.pass(cr)
	w.Expect(w.operator.Requests.Of("patch", "widgets/status")).To(HaveLen(1), "one status for three stages")
	w.Expect(cr.Status.Reported).To(Equal("fine"))

	w.change(cr, func(s *widget.Spec) { s.Text = "stop" })
	w.decides(w.condition(cr, "Stalled"), Equal(`True Refused: text: it says "stop"`), HavePrefix("observedGeneration is 0"), "a refusal is of the newest generation")
	w.Expect(w.condition(cr, "Ready")()).To(Equal(`False Refused: text: it says "stop"`))
	w.Expect(w.condition(cr, "First")()).To(HavePrefix("True"))
	w.everyConditionIsOfNewest(cr, 2)

	w.change(cr, func(s *widget.Spec) { s.Text = "panic" })
	w.Eventually(w.condition(cr, "Second")).Should(Equal("False Panic: stage Second panicked: the builder is broken"))
	w.Expect(w.condition(cr, "Stalled")()).To(Equal("absent"), "a panic does not stall")
	w.everyConditionIsOfNewest(cr, 2)

	w.change(cr, func(s *widget.Spec) { s.Text = "fine" })
	w.awaitReady(cr)
	w.everyConditionIsOfNewest(cr, 4)
	w.Expect(len(w.operator.Requests.Of("patch", "widgets/status"))).To(BeNumerically("<=", w.watched.of(cr.Name)), "writes and passes")

	w.must(w.client.Status().Patch(w.ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))))
	w.awaitReady(cr)
	w.operator.Stop()
}

// everyConditionIsOfNewest checks that at least this number of conditions exist, and that
// they are of the newest generation.
func (w *world) everyConditionIsOfNewest(cr *widget.Widget, atLeast int) {
	w.t.Helper()
	w.must(w.get(cr))
	w.Expect(len(cr.Status.Conditions)).To(BeNumerically(">=", atLeast))
	for _, condition := range cr.Status.Conditions {
		if condition.Type != "Third" { // not reached while the second stage fails
			w.Expect(condition.ObservedGeneration).To(Equal(cr.Generation), "%s", condition.Type)
		}
	}
}

// statusClient writes the status with another function.
type statusClient struct {
	client.Client
	write func(context.Context, client.SubResourceWriter, *widget.Widget, client.Patch, ...client.SubResourcePatchOption) error
}

func (c statusClient) Status() client.SubResourceWriter { return statusWriter{c.Client.Status(), c} }

type statusWriter struct {
	client.SubResourceWriter
	how statusClient
}

func (w statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.how.write(ctx, w.SubResourceWriter, obj.(*widget.Widget), patch, opts...)
}

func writeTwice(ctx context.Context, next client.SubResourceWriter, cr *widget.Widget, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := next.Patch(ctx, cr.DeepCopy(), patch, opts...); err != nil {
		return err
	}
	return next.Patch(ctx, cr, patch, opts...)
}

func forgetGeneration(ctx context.Context, next client.SubResourceWriter, cr *widget.Widget, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	for _, condition := range cr.Status.Conditions {
		if condition.Status == "False" {
			cr.Status.ObservedGeneration = 0
		}
	}
	return next.Patch(ctx, cr, patch, opts...)
}

// inventingReader returns widgets whose stage Checked has a child.
type inventingReader struct{ client.Reader }

func (r inventingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, obj, opts...)
	if cr, ok := obj.(*widget.Widget); ok && err == nil && meta.FindStatusCondition(cr.Status.Conditions, "Checked") != nil {
		cr.Status.Completed = append(cr.Status.Completed, commonv1.CompletedStage{
			Stage: "Checked", Inputs: "invented", Generation: cr.Generation, Children: []string{"ConfigMap/" + cr.Name},
		})
	}
	return err
}
