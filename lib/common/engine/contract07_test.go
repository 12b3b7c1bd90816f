package engine_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract07StampsAndWatches(t *testing.T) {
	contract{check: contract07, mutants: map[string]mutant{
		"forgets the labels": {
			seam:   func(s *engine.Seam) { s.Client = forgetfulClient{Client: s.Client, field: "labels"} },
			caught: `labels of \*v1\.ConfigMap`,
		},
		"forgets the owner": {
			seam:   func(s *engine.Seam) { s.Client = forgetfulClient{Client: s.Client, field: "ownerReferences"} },
			caught: `owner of \*v1\.ConfigMap`,
		},
		"is woken only by its children": {
			seam:   func(s *engine.Seam) { s.Cache = filteredCache{s.Cache, owned} },
			caught: `the Secret wakes|Secret wakes does not exist|unlisted child is deleted`,
			hangs:  true,
		},
	}}.test(t)
}

func contract07(w *world) {
	later := schema.GroupVersionKind{Group: w.namespace + ".test", Version: "v1", Kind: "Later"}
	start(w, service{
		Name: owner,
		Stages: []stage{
			{Condition: "InputsReady", Needs: func(cr *widget.Widget) []engine.Need {
				if cr.Spec.SecretName == "" {
					return nil
				}
				return []engine.Need{engine.Secret(cr.Spec.SecretName, "password")}
			}},
			build("PartsReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
				children := []engine.Child{configMap(cr.Name, cr.Spec.Text), statefulSet(cr), when(cr.Spec.Text == "service", serviceOf(cr)), volume(cr)}
				for _, part := range cr.Spec.Parts {
					children = append(children, configMap(cr.Name+"-"+part, ""))
				}
				return children
			}),
			{Condition: "LaterServed", Needs: func(cr *widget.Widget) []engine.Need {
				if cr.Spec.Text != "later" {
					return nil
				}
				return []engine.Need{engine.Served(later)}
			}},
		},
		Owns: owns,
	})
	w.stamps()
	w.prunes()
	w.wakes()
	w.waitsForKinds(later)
}

// stamps checks names, owner and labels of every child.
func (w *world) stamps() {
	cr := w.widget("stamps", widget.Spec{})
	set := &appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)}
	pv := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))}
	children := []client.Object{w.configMap(cr.Name), set, pv}
	for _, child := range children {
		w.Eventually(func() error { return w.get(child) }).Should(Succeed(), "%T", child)
		labels := child.GetLabels()
		for label, value := range map[string]string{
			"app.kubernetes.io/name": owner, "app.kubernetes.io/instance": cr.Name, "app.kubernetes.io/component": "widget",
			"app.kubernetes.io/part-of": cr.Name, "app.kubernetes.io/managed-by": "asterism", "asterism.dev/owner-uid": string(cr.UID),
		} {
			w.Expect(labels).To(HaveKeyWithValue(label, value), "labels of %T", child)
		}
		w.Expect(text(child)).NotTo(ContainSubstring("app.kubernetes.io/version"))
		owners := child.GetOwnerReferences()
		if child == pv {
			w.Expect(owners).To(BeEmpty(), "a cluster-scoped child has no namespaced owner")
			continue
		}
		w.Expect(owners).To(HaveLen(1), "owner of %T", child)
		w.Expect(owners[0].UID).To(Equal(cr.UID), "owner of %T", child)
		w.Expect(*owners[0].Controller && *owners[0].BlockOwnerDeletion).To(BeTrue(), "owner of %T", child)
	}
	w.Expect(set.Spec.Template.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "asterism"), "labels of the pods")
	w.Expect(set.Spec.Template.Labels).NotTo(HaveKey("asterism.dev/owner-uid"), "labels of the pods")
	w.Expect(w.operator.Requests.Of("watch", "services")).To(HaveLen(2), "a kind that may have to be deleted is watched, in each namespace")
	w.Expect(w.operator.Requests.Of("watch", "deployments")).To(BeEmpty(), "watches start when they are needed")
}

// prunes checks that children that a builder no longer lists are deleted, but not of a stage
// that is not reached.
func (w *world) prunes() {
	cr := w.widget("prunes", widget.Spec{Parts: []string{"a", "b"}})
	a, b := w.configMap(cr.Name+"-a"), w.configMap(cr.Name+"-b")
	w.Eventually(func() error { return w.get(b) }).Should(Succeed())
	w.change(cr, func(s *widget.Spec) { s.Parts, s.SecretName = []string{"a"}, "prunes" })
	w.Eventually(w.condition(cr, "InputsReady")).Should(HavePrefix("False Waiting: Secret prunes does not exist"))
	w.pass(cr)
	w.Expect(w.uid(b)).NotTo(BeEmpty(), "a stage that was not reached prunes nothing")
	needed := w.secret("prunes")
	needed.Data = map[string][]byte{"other": []byte("x")}
	w.create(needed)
	w.happens("the Secret wakes", w.condition(cr, "InputsReady"), Equal("False Waiting: Secret prunes lacks key password: add the key"))
	needed.Data["password"] = []byte("x")
	w.must(w.client.Update(w.ctx, needed))
	w.Eventually(func() bool { return w.gone(b) }).Should(BeTrue(), "an unlisted child is deleted")
	w.Expect(w.uid(a)).NotTo(BeEmpty())
}

// wakes checks that a change of an object wakes the objects that looked at it.
func (w *world) wakes() {
	cr := w.widget("wakes", widget.Spec{SecretName: "wakes"})
	w.Eventually(w.condition(cr, "InputsReady")).Should(HavePrefix("False Waiting: Secret wakes does not exist"))
	needed := w.secret("wakes")
	needed.Data = map[string][]byte{"password": []byte("x")}
	w.create(needed)
	w.Eventually(w.condition(cr, "InputsReady")).Should(HavePrefix("True"), "the Secret was created later")
	pv := &corev1.PersistentVolume{ObjectMeta: metaOf("", volumeName(cr))}
	for _, child := range []client.Object{w.configMap(cr.Name), pv} {
		w.Eventually(func() error { return w.get(child) }).Should(Succeed())
		uid := child.GetUID()
		w.must(w.client.Patch(w.ctx, child, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
		w.must(w.client.Delete(w.ctx, child))
		w.Eventually(func() string {
			if w.get(child) != nil {
				return string(uid)
			}
			return string(child.GetUID())
		}).ShouldNot(Equal(string(uid)), "%T is recreated", child)
	}
	w.change(cr, func(s *widget.Spec) { s.Text = "service" })
	svc := &corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(svc) }).Should(Succeed())
	w.change(cr, func(s *widget.Spec) { s.Text = "no service" })
	w.Eventually(func() bool { return w.gone(svc) }).Should(BeTrue())
}

// waitsForKinds checks the wait for a kind that is served later, without a restart.
func (w *world) waitsForKinds(later schema.GroupVersionKind) {
	cr := w.widget("later", widget.Spec{Text: "later"})
	w.makeReady(cr)
	w.Eventually(w.condition(cr, "LaterServed")).Should(HavePrefix("False Waiting: the API server does not serve the kind Later"))
	w.define(later)
	w.Eventually(w.condition(cr, "LaterServed")).Should(HavePrefix("True"))
}

// define makes the API server serve the kind Later.
func (w *world) define(later schema.GroupVersionKind) {
	w.t.Helper()
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "laters." + later.Group},
		"spec": map[string]any{
			"group": later.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "Later", "plural": "laters", "singular": "later", "listKind": "LaterList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	w.must(w.client.Create(w.ctx, definition))
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), definition) })
}

// makeReady reports the StatefulSet's pods as ready.
func (w *world) makeReady(cr *widget.Widget) {
	w.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.Eventually(func() error { return w.get(set) }).Should(Succeed())
	w.Eventually(func() string {
		var all corev1.PodList
		w.must(w.client.List(w.ctx, &all, client.InNamespace(w.namespace), client.MatchingLabels(engine.Selector(owner, cr.Name))))
		for _, pod := range all.Items {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = w.client.Status().Update(w.ctx, &pod)
		}
		return w.condition(cr, "PartsReady")()
	}).Should(HavePrefix("True"))
}

// owned tells whether an object is a child, by its label, or the reconciled object: a watch
// of owned kinds would deliver only these.
func owned(event any) bool {
	obj, ok := event.(client.Object)
	_, reconciled := event.(*widget.Widget)
	return reconciled || ok && obj.GetLabels()["asterism.dev/owner-uid"] != ""
}
