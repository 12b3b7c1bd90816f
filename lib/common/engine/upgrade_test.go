package engine_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

// TestChildrenOfRemovedStagesAreDeleted: a new version of an operator may rename and remove
// stages.
func TestChildrenOfRemovedStagesAreDeleted(t *testing.T) {
	w := newTestWorld(t)
	more := build("MoreReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name+"-more", "")}
	})
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("OldName"), more}})
	cr := w.widget("upgraded", widget.Spec{Text: "kept"})
	w.awaitReady(cr)
	w.must(w.get(w.configMap(cr.Name + "-more")))
	kept := w.uid(w.configMap(cr.Name))
	w.operator.Stop()
	start(w, service{Name: owner, Owns: owns, Stages: []stage{configMaps("NewName")}})
	w.Eventually(func() bool { return w.gone(w.configMap(cr.Name + "-more")) }).Should(BeTrue())
	w.Expect(w.uid(w.configMap(cr.Name))).To(Equal(kept), "a child that another stage lists now stays")
	w.Eventually(w.condition(cr, "OldName")).Should(Equal("absent"))
	w.awaitReady(cr)
}

// TestChildrenOfAKindThatIsNoLongerBuiltAreDeleted, because Owns still has the kind.
func TestChildrenOfAKindThatIsNoLongerBuiltAreDeleted(t *testing.T) {
	w := newTestWorld(t)
	version := func(children func(*widget.Widget) []engine.Child) service {
		return service{Name: owner, Owns: []client.Object{&corev1.ConfigMap{}, &corev1.Service{}}, Stages: []stage{
			build("PartsReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child { return children(cr) }),
		}}
	}
	start(w, version(func(cr *widget.Widget) []engine.Child { return []engine.Child{serviceOf(cr)} }))
	cr := w.widget("former", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	former := &corev1.Service{ObjectMeta: metaOf(w.namespace, cr.Name)}
	w.must(w.get(former))
	w.operator.Stop()
	start(w, version(func(cr *widget.Widget) []engine.Child { return []engine.Child{configMap(cr.Name, "")} }))
	w.Eventually(func() bool { return w.gone(former) }).Should(BeTrue())
}

// TestChildrenOfAStageThatBuildsNoLongerAreDeleted, unless a later stage lists them now.
func TestChildrenOfAStageThatBuildsNoLongerAreDeleted(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{
		build("PartsReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name, ""), configMap(cr.Name+"-more", "")}
		}),
	}})
	cr := w.widget("former", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	kept := w.uid(w.configMap(cr.Name))
	w.operator.Stop()
	start(w, service{Name: owner, Owns: owns, Stages: []stage{{Condition: "PartsReady"}, configMaps("LaterReady")}})
	w.Eventually(func() bool { return w.gone(w.configMap(cr.Name + "-more")) }).Should(BeTrue())
	w.awaitReady(cr)
	w.Expect(w.uid(w.configMap(cr.Name))).To(Equal(kept))
}

// TestARenamedStageReplacesNothing: a label of a child may change, and a Replaced child that
// could stay must not be away for a moment.
func TestARenamedStageReplacesNothing(t *testing.T) {
	w := newTestWorld(t)
	version := func(condition string) service {
		return service{Name: owner, Owns: owns, Stages: []stage{build(condition, func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{engine.Replaced(configMap(cr.Name, cr.Spec.Text).WithImmutable(true))}
		})}}
	}
	start(w, version("OldName"))
	cr := w.widget("renamed", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	child := w.configMap(cr.Name)
	uid := w.uid(child)
	w.operator.Stop()
	start(w, version("NewName"))
	w.Eventually(w.condition(cr, "NewName")).Should(HavePrefix("True"))
	w.Expect(w.uid(child)).To(Equal(uid), "the stage has another name")
	w.Expect(child.Labels).To(HaveKeyWithValue("asterism.dev/stage", "NewName"))
	w.must(w.client.Patch(w.ctx, child, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))))
	w.Eventually(func() map[string]string { w.must(client.IgnoreNotFound(w.get(child))); return child.Annotations }).ShouldNot(BeEmpty())
	w.Expect(child.UID).To(Equal(uid), "another client has removed the annotation")
}

// TestARefusedRepairReplacesNothing: a policy that refuses to restore a child would also refuse
// the child that replaces it.
func TestARefusedRepairReplacesNothing(t *testing.T) {
	w := newTestWorld(t)
	s := service{Name: owner, Owns: owns, Stages: []stage{build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{engine.Replaced(configMap(cr.Name, "").WithImmutable(true))}
	})}}
	start(w, s)
	cr := w.widget("refused", widget.Spec{})
	w.awaitReady(cr)
	child := w.configMap(cr.Name)
	uid := w.uid(child)
	w.operator.Stop()
	w.must(w.client.Patch(w.ctx, child, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/instance":null}}}`))))
	start(w, s, func(s *engine.Seam) { s.Client = policyClient{s.Client} })
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False Invalid"))
	w.Expect(w.uid(child)).To(Equal(uid))
}

// policyClient changes no child: a policy refuses every change with 422.
type policyClient struct{ client.Client }

func (policyClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "refused", nil)
}

func (policyClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "refused", nil)
}

// TestAnAbsenceIsProvedAgainAfterAChange: an earlier process may have created the child since,
// and have ended before it has written the status; the watch may be behind.
func TestAnAbsenceIsProvedAgainAfterAChange(t *testing.T) {
	w := newTestWorld(t)
	s := service{Name: owner, Owns: owns, Stages: []stage{build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{when(cr.Spec.Text == "second", configMap(cr.Name, ""))}
	})}}
	start(w, s)
	cr := w.widget("absent", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	w.operator.Stop()
	start(w, s, func(s *engine.Seam) { s.Client = statusClient{s.Client, loseStatus} })
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	child := w.configMap(cr.Name)
	w.Eventually(func() error { return w.get(child) }).Should(Succeed())
	w.operator.Stop()
	w.change(cr, func(s *widget.Spec) { s.Text = "first" })
	start(w, s, func(s *engine.Seam) { s.Cached = absentReader{s.Cached, cr.Name} })
	w.decides(func() string {
		condition := w.condition(cr, "ConfigReady")() // is written after the deletion
		if w.gone(child) {
			return "gone"
		}
		return condition
	}, Equal("gone"), HavePrefix("True"), "the child of the process before")
}

// loseStatus loses every write of a status, as if the process ended before it.
func loseStatus(context.Context, client.SubResourceWriter, *widget.Widget, client.Patch, ...client.SubResourcePatchOption) error {
	return errors.New("the status is lost")
}

// absentReader shows no ConfigMap of the name, like a watch that is behind.
type absentReader struct {
	client.Reader
	name string
}

func (r absentReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if key.Name == r.name && obj.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	return r.Reader.Get(ctx, key, obj, opts...)
}

// TestForbiddenKindsAreConditions, also of a kind that no stage builds now.
func TestForbiddenKindsAreConditions(t *testing.T) {
	w := newTestWorld(t)
	role := &rbacv1.Role{ObjectMeta: metaOf(w.namespace, "limited"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"test.asterism.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}
	w.as(role)
	start(w, service{Name: owner, Owns: append([]client.Object{&appsv1.StatefulSet{}}, owns[:1]...), Stages: []stage{configMaps("ConfigReady")}},
		func(s *engine.Seam) { s.ReadTimeout = readTimeout })
	cr := w.widget("forbidden", widget.Spec{})
	w.Eventually(w.condition(cr, "ConfigReady")).Should(And(HavePrefix("False Error"), ContainSubstring("StatefulSet cannot be watched")))
	w.Eventually(w.condition(cr, "Ready")).Should(ContainSubstring("StatefulSet cannot be watched"))
}

// shelf is a Rack whose definition this test installs and uninstalls.
type shelf struct{ widget.Rack }

func (s *shelf) DeepCopyObject() runtime.Object { return &shelf{*s.DeepCopy()} }

type shelfList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []shelf `json:"items"`
}

func (l *shelfList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for _, item := range l.Items {
		copied.Items = append(copied.Items, shelf{*item.DeepCopy()})
	}
	return &copied
}

// TestUninstalledKindsAreAwaitedAgain, with the name of the operator that installs them, and
// without a restart when they are installed again.
func TestUninstalledKindsAreAwaitedAgain(t *testing.T) {
	w := newTestWorld(t)
	gv := schema.GroupVersion{Group: w.namespace + ".asterism.dev", Version: "v1"}
	addShelf := func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypeWithName(gv.WithKind("BookShelf"), &shelf{})
		scheme.AddKnownTypeWithName(gv.WithKind("BookShelfList"), &shelfList{})
		metav1.AddToGroupVersion(scheme, gv)
		return nil
	}
	s := service{Name: owner, Owns: []client.Object{&shelf{}}, Stages: []stage{
		build("ShelfReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			made := &shelf{}
			made.Name, made.Spec.Text = cr.Name, cr.Spec.Text
			return []engine.Child{made}
		}),
	}}
	w.operator = enginetest.Run(w.t, w.namespace, enginetest.Scheme(w.t, widget.AddToScheme, addShelf), seamed[*widget.Widget]{Service: s, change: func(s *engine.Seam) {
		s.DiscoveryRetry = readTimeout
	}})
	cr := w.widget("shelf", widget.Spec{})
	missing := And(HavePrefix("False Waiting"), ContainSubstring("does not serve the kind BookShelf"), HaveSuffix("install the operator book-shelf (package book-shelf-operator)"))
	w.Eventually(w.condition(cr, "ShelfReady")).Should(missing)
	definition := shelfDefinition(gv)
	w.must(w.client.Create(w.ctx, definition.DeepCopy()))
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), definition) })
	w.Eventually(w.condition(cr, "ShelfReady")).Should(HavePrefix("False Progressing: BookShelf shelf"))
	w.must(w.client.Delete(w.ctx, definition.DeepCopy()))
	w.Eventually(w.condition(cr, "ShelfReady")).Should(missing)
	w.must(w.client.Create(w.ctx, definition.DeepCopy()))
	w.Eventually(w.condition(cr, "ShelfReady")).Should(HavePrefix("False Progressing: BookShelf shelf"))
}

func shelfDefinition(gv schema.GroupVersion) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "bookshelves." + gv.Group},
		"spec": map[string]any{
			"group": gv.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "BookShelf", "plural": "bookshelves", "singular": "bookshelf", "listKind": "BookShelfList"},
			"versions": []any{map[string]any{
				"name": gv.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}
