package engine_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract01ServerSideApply(t *testing.T) {
	contract{check: contract01, mutants: map[string]mutant{
		"writes whole objects": {
			seam:   func(s *engine.Seam) { s.Client = puttingClient{s.Client} },
			caught: `written by .*operation Update|replicas of another client|annotation of another client`,
		},
		"creates before it applies": {
			seam:   func(s *engine.Seam) { s.Client = creatingClient{s.Client} },
			caught: `operation Update`,
		},
		"has one owner for everything": {
			seam:   func(s *engine.Seam) { s.Client = oneOwnerClient{s.Client} },
			caught: `owner of the status`,
		},
	}}.test(t)
}

func contract01(w *world) {
	start(w, service{
		Name: owner,
		Stages: []stage{build("WorkloadReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			data := map[string]string{"always": cr.Spec.Text}
			if cr.Spec.Text == "first" {
				data["first"] = "yes"
			}
			config := configMap(cr.Name, cr.Spec.Text)
			config.Data = data
			return []engine.Child{config, statefulSet(cr), serviceOf(cr)}
		})},
		Teardown: []stage{{Condition: "Nothing"}},
	})
	cr := w.widget("apply", widget.Spec{Text: "first"})
	children := []client.Object{
		w.configMap(cr.Name),
		&appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)},
		&corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name)},
	}
	for _, child := range children {
		w.Eventually(func() error { return w.get(child) }).Should(Succeed(), "%T exists", child)
		w.onlyApplied(child)
	}
	w.Eventually(w.condition(cr, "WorkloadReady")).Should(ContainSubstring("Progressing"))
	w.ownersOf(cr)
	w.foreignFieldsStay(cr, children)
}

// foreignFieldsStay checks that a write of the engine keeps the fields of other clients.
func (w *world) foreignFieldsStay(cr *widget.Widget, children []client.Object) {
	w.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	w.must(w.client.SubResource("scale").Update(w.ctx, set, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler")))
	for _, child := range children {
		w.annotate(child, "note", "foreign")
	}
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	config := w.configMap(cr.Name)
	w.Eventually(func() string { _ = w.get(config); return config.Data["always"] }).Should(Equal("second"))
	w.Expect(config.Data).NotTo(HaveKey("first"), "a key that is no longer wanted is removed")
	w.Eventually(func() string { _ = w.get(set); return set.Spec.Template.Annotations["text"] }).Should(Equal("second"))
	w.Expect(*set.Spec.Replicas).To(Equal(int32(5)), "replicas of another client")
	for _, child := range children {
		w.must(w.get(child))
		w.Expect(child.GetAnnotations()).To(HaveKeyWithValue("note", "foreign"), "annotation of another client")
		w.onlyApplied(child)
	}
}

// onlyApplied checks that managedFields has one entry of the engine, for an apply.
func (w *world) onlyApplied(obj client.Object) {
	w.t.Helper()
	var entries int
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == "kube-controller-manager" || entry.Manager == "other-client" || entry.Manager == "autoscaler" {
			continue
		}
		w.Expect(entry.Manager).To(Equal(owner), "%T has fields of an unexpected owner", obj)
		w.Expect(entry.Operation).To(Equal(metav1.ManagedFieldsOperationApply), "%T written by %s with operation %s", obj, entry.Manager, entry.Operation)
		entries++
	}
	w.Expect(entries).To(Equal(1), "%T: entries of the engine", obj)
}

// ownersOf checks that status and finalizer of the reconciled object have own field owners.
func (w *world) ownersOf(cr *widget.Widget) {
	w.t.Helper()
	owners := map[string]string{}
	for _, entry := range cr.GetManagedFields() {
		fields := string(entry.FieldsV1.GetRawBytes())
		switch {
		case entry.Subresource == "status":
			owners["status"] = entry.Manager
		case containsFinalizers(fields):
			owners["finalizer"] = entry.Manager
		}
	}
	w.Expect(owners).To(HaveKeyWithValue("status", owner+"-status"), "owner of the status")
	w.Expect(owners).To(HaveKeyWithValue("finalizer", owner+"-finalizer"), "owner of the finalizer")
}

// puttingClient replaces the whole object.
type puttingClient struct{ client.Client }

func (c puttingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	body := bodyOf(obj)
	current := &unstructured.Unstructured{Object: map[string]any{"apiVersion": body.GetAPIVersion(), "kind": body.GetKind()}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(body), current); err != nil {
		body.SetResourceVersion("")
		return c.Create(ctx, body, client.FieldOwner(owner))
	}
	body.SetResourceVersion(current.GetResourceVersion())
	return c.Update(ctx, body, client.FieldOwner(owner))
}

// creatingClient creates, and applies only what exists.
type creatingClient struct{ client.Client }

func (c creatingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if body := bodyOf(obj); body.GetResourceVersion() == "1" {
		body.SetResourceVersion("")
		return c.Create(ctx, body, client.FieldOwner(owner))
	}
	return c.Client.Apply(ctx, obj, opts...)
}

// oneOwnerClient writes the status as the owner of the children.
type oneOwnerClient struct{ client.Client }

func (c oneOwnerClient) Status() client.SubResourceWriter { return oneOwnerWriter{c.Client.Status()} }

type oneOwnerWriter struct{ client.SubResourceWriter }

func (c oneOwnerWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.SubResourceWriter.Patch(ctx, obj, patch, append(opts, client.FieldOwner(owner))...)
}
