package engine_test

import (
	"context"
	stderrors "errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract02NeverAdopts(t *testing.T) {
	contract{check: contract02, mutants: map[string]mutant{
		"applies to any existing object": {
			seam:   func(s *engine.Seam) { s.Client = forgetfulClient{Client: s.Client, field: "resourceVersion"} },
			caught: `created by another client`,
		},
		"does not send the UID": {
			seam:   func(s *engine.Seam) { s.Client = forgetfulClient{Client: s.Client, field: "uid"} },
			caught: `has replaced a child`,
		},
		"adopts an object by its name": {
			seam:   func(s *engine.Seam) { s.Cached = adoptingReader{s.Cached} },
			caught: `object is foreign`,
		},
	}}.test(t)
}

func contract02(w *world) {
	var before hooks
	start(w, service{Name: owner, Stages: []stage{configMaps("ConfigReady")}}, func(s *engine.Seam) {
		s.Client = hookedClient{s.Client, &before}
	})
	w.leavesForeign()
	w.leavesWhatAnotherControllerOwns()
	w.losesTheRaceToCreate(&before)
	w.losesTheRaceToUpdate(&before)
	w.operator.Stop()
	w.stopsAtAConflict()
}

// stopsAtAConflict checks that neither the later children of the stage nor later stages are
// created or repaired after a foreign object, also if the stage was complete before.
func (w *world) stopsAtAConflict() {
	inOrder := service{Name: owner, Stages: []stage{
		build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name, ""), configMap(cr.Name+"-behind", "")}
		}),
		build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name+"-later", "")}
		}),
	}}
	start(w, inOrder)
	foreign := w.configMap("first")
	w.create(foreign)
	cr := w.widget("first", widget.Spec{})
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False Conflict"))
	w.pass(cr)
	w.Expect(w.gone(w.configMap("first-behind"))).To(BeTrue(), "no child is created after a conflict")
	w.must(w.client.Delete(w.ctx, foreign))
	w.awaitReady(cr)

	w.operator.Stop()
	for _, name := range []string{"first", "first-behind", "first-later"} {
		w.must(w.client.Delete(w.ctx, w.configMap(name)))
	}
	w.create(w.configMap("first"))
	start(w, inOrder)
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False Conflict"))
	w.pass(cr)
	for _, name := range []string{"first-behind", "first-later"} {
		w.Expect(w.gone(w.configMap(name))).To(BeTrue(), "no child is recreated after a conflict")
	}
	w.operator.Stop()
}

// TestAConflictOutweighsAServerThatFails: a stage that was complete goes on while its server fails, but
// not past a foreign object.
func TestAConflictOutweighsAServerThatFails(t *testing.T) {
	w := newTestWorld(t)
	server := &outside{}
	s := service{Name: owner, Stages: []stage{
		{
			Condition: "ConfigReady", Do: server.register, Every: func(*widget.Widget) time.Duration { return 100 * time.Millisecond },
			Build: func(cr *widget.Widget, _ engine.Inputs) ([]engine.Child, error) {
				return []engine.Child{configMap(cr.Name, "")}, nil
			},
		},
		build("VolumeReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			return []engine.Child{configMap(cr.Name+"-later", "")}
		}),
	}}
	start(w, s)
	cr := w.widget("served", widget.Spec{})
	w.awaitReady(cr)
	server.breaks(stderrors.New("no answer"))
	w.Eventually(w.condition(cr, "ConfigReady")).Should(And(HavePrefix("False"), ContainSubstring("no answer")))

	w.operator.Stop()
	for _, name := range []string{"served", "served-later"} {
		w.must(w.client.Delete(w.ctx, w.configMap(name)))
	}
	w.create(w.configMap("served"))
	start(w, s)
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False Conflict"))
	w.pass(cr)
	w.Expect(w.gone(w.configMap("served-later"))).To(BeTrue(), "the walk stops at a conflict")
	w.must(w.client.Delete(w.ctx, w.configMap("served")))
	w.Eventually(w.condition(cr, "ConfigReady")).Should(And(HavePrefix("False"), ContainSubstring("no answer")))
	w.Eventually(func() bool { return w.gone(w.configMap("served-later")) }).Should(BeFalse(), "the walk goes on although the server fails")
	server.breaks(nil)
	w.awaitReady(cr)
}

// TestAConflictDeletesNothing: what has the old name may serve users, until its successor can exist.
func TestAConflictDeletesNothing(t *testing.T) {
	w := newTestWorld(t)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name+"-"+cr.Spec.Text, "")}
	})}})
	cr := w.widget("renamed", widget.Spec{Text: "old"})
	w.awaitReady(cr)
	w.create(w.configMap("renamed-new"))
	w.change(cr, func(s *widget.Spec) { s.Text = "new" })
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False Conflict"))
	w.pass(cr)
	w.must(w.get(w.configMap("renamed-old")))
	w.must(w.client.Delete(w.ctx, w.configMap("renamed-new")))
	w.awaitReady(cr)
	w.Eventually(func() bool { return w.gone(w.configMap("renamed-old")) }).Should(BeTrue())
}

// brokenClient fails to apply the objects of a name, while it is broken.
type brokenClient struct {
	client.Client
	name   string
	broken *atomic.Int32 // so many times
}

func (c brokenClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if bodyOf(obj).GetName() == c.name && c.broken.Add(-1) >= 0 {
		return stderrors.New("the API server is not available")
	}
	return c.Client.Apply(ctx, obj, opts...)
}

// TestEveryChildIsTriedAgain: no event reports that a write would succeed, and the first child may wait
// for long.
func TestEveryChildIsTriedAgain(t *testing.T) {
	w := newTestWorld(t)
	var broken atomic.Int32
	broken.Store(math.MaxInt32)
	start(w, service{Name: owner, Owns: owns, Stages: []stage{build("ConfigReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
		return []engine.Child{&widget.Rack{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-rack"}}, configMap(cr.Name, "")}
	})}}, func(s *engine.Seam) { s.Client = brokenClient{s.Client, "tried", &broken} })
	cr := w.widget("tried", widget.Spec{})
	w.Eventually(w.condition(cr, "ConfigReady")).Should(HavePrefix("False"))
	w.pass(cr)
	w.Consistently(func() bool { return w.gone(w.configMap("tried")) }, time.Second).Should(BeTrue()) // no event is left
	broken.Store(0)
	w.Eventually(func() bool { return w.gone(w.configMap("tried")) }).Should(BeFalse())
}

// leavesForeign checks that the engine does not change a foreign object, reports it, and
// continues after its deletion.
func (w *world) leavesForeign() {
	foreign := w.configMap("foreign")
	foreign.Data = map[string]string{"text": "foreign"}
	w.create(foreign)
	version := foreign.ResourceVersion
	cr := w.widget("foreign", widget.Spec{Text: "wanted"})
	w.decides(w.condition(cr, "ConfigReady"), And(HavePrefix("False Conflict"), ContainSubstring("ConfigMap foreign")), HavePrefix("True"), "the object is foreign")
	w.pass(cr)
	w.must(w.get(foreign))
	w.Expect(foreign.ResourceVersion).To(Equal(version), "a foreign object is not written")
	w.must(w.client.Delete(w.ctx, foreign))
	w.awaitReady(cr)
	w.must(w.get(foreign))
	w.Expect(foreign.Data).To(HaveKeyWithValue("text", "wanted"))
}

// leavesWhatAnotherControllerOwns checks that the controller reference counts, and not the
// label.
func (w *world) leavesWhatAnotherControllerOwns() {
	other := w.configMap("another")
	w.create(other)
	cr := w.widget("owned", widget.Spec{Text: "wanted"})
	owned := w.configMap("owned-by-another")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: other.Name, UID: other.UID, Controller: new(true)}}
	owned.Labels = map[string]string{"asterism.dev/owner-uid": string(cr.UID)}
	w.create(owned)
	second := w.widget(owned.Name, widget.Spec{Text: "wanted"})
	w.decides(w.condition(second, "ConfigReady"), And(HavePrefix("False Conflict"), ContainSubstring("ConfigMap another")), HavePrefix("True"), "the object is foreign")
}

// losesTheRaceToCreate checks a foreign object that is created after the engine's read.
func (w *world) losesTheRaceToCreate(before *hooks) {
	foreign := w.configMap("race")
	foreign.Data = map[string]string{"text": "foreign"}
	created := foreign.DeepCopy() // foreign is read at the same time
	before.apply(foreign.Name, func() { w.create(created) })
	cr := w.widget("race", widget.Spec{Text: "wanted"})
	w.Eventually(func() string { _ = w.get(foreign); return string(foreign.UID) }).ShouldNot(BeEmpty())
	w.decides(w.condition(cr, "ConfigReady"), HavePrefix("False Conflict"), HavePrefix("True"), "the object was created by another client")
	w.must(w.get(foreign))
	w.Expect(foreign.Data).To(HaveKeyWithValue("text", "foreign"), "the object was created by another client")
}

// losesTheRaceToUpdate checks a child that another client replaces by a foreign object.
func (w *world) losesTheRaceToUpdate(before *hooks) {
	cr := w.widget("replaced", widget.Spec{Text: "first"})
	w.awaitReady(cr)
	child := w.configMap(cr.Name)
	w.must(w.get(child))
	name := child.Name // cr and child are read at the same time
	before.apply(name, func() {
		w.must(w.client.Delete(w.ctx, w.configMap(name)))
		foreign := w.configMap(name)
		foreign.Data = map[string]string{"text": "foreign"}
		w.create(foreign)
	})
	w.change(cr, func(s *widget.Spec) { s.Text = "second" })
	w.decides(w.condition(cr, "ConfigReady"), HavePrefix("False Conflict"), HavePrefix("True"), "the object has replaced a child")
	w.must(w.get(child))
	w.Expect(child.Data).To(HaveKeyWithValue("text", "foreign"), "the object has replaced a child")
}

// TestCreateOnlyApply checks a property of the API server that the engine relies on, for
// every kind that an Asterism operator owns: an apply with resourceVersion 1 creates an
// absent object, and is refused if the object exists.
func TestCreateOnlyApply(t *testing.T) {
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	namespace := enginetest.Namespace(t)
	c := enginetest.Client(t, widget.AddToScheme)
	for _, body := range oneOfEach(namespace) {
		kind := body["kind"].(string)
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			object := &unstructured.Unstructured{Object: body}
			if object.GetNamespace() == "" && clusterWide[kind] {
				t.Cleanup(func() { g.Expect(c.Delete(context.Background(), object)).To(Succeed()) })
			}
			apply := func() error {
				sent := object.DeepCopy()
				sent.SetResourceVersion("1")
				return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(owner), client.ForceOwnership)
			}
			g.Expect(apply()).To(Succeed())
			stored := object.DeepCopy()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), stored)).To(Succeed())
			g.Expect(apply()).To(MatchError(errors.IsConflict, "IsConflict"))
			sent := object.DeepCopy()
			sent.SetUID(types.UID("00000000-0000-4000-8000-000000000000"))
			g.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(owner), client.ForceOwnership)).
				To(MatchError(func(err error) bool { return errors.IsConflict(err) || errors.IsInvalid(err) }, "refused"))
			g.Expect(stored.GetManagedFields()).To(ContainElement(HaveField("Manager", owner)))
			for _, entry := range stored.GetManagedFields() {
				if entry.Manager == owner {
					g.Expect(entry.Operation).To(Equal(metav1.ManagedFieldsOperationApply))
				}
			}
		})
	}
}

// TestAnUnknownFieldWaits: during an upgrade, the CRD of a child may be older than its parent's operator.
func TestAnUnknownFieldWaits(t *testing.T) {
	t.Parallel()
	enginetest.InstallCRDs(t, "../internal/widget/crd")
	c := enginetest.Client(t, widget.AddToScheme)
	newer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.asterism.dev/v1alpha1", "kind": "Widget",
		"metadata": map[string]any{"name": "newer", "namespace": enginetest.Namespace(t)},
		"spec":     map[string]any{"newer": "field"},
	}}
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(newer), client.FieldOwner(owner), client.ForceOwnership)
	NewWithT(t).Expect(apply.OutcomeOf(apply.OutcomeOfWrite(observe.Key{}, err))).To(HaveValue(And(
		HaveField("Reason", apply.ReasonWaiting), HaveField("Stalled", false), HaveField("After", BeNumerically(">", 0)),
		HaveField("Message", ContainSubstring("spec.newer: field not declared in schema")),
	)))
}

var clusterWide = map[string]bool{
	"PersistentVolume": true, "Namespace": true, "StorageClass": true, "CSIDriver": true, "ClusterRole": true, "ClusterRoleBinding": true,
}

// oneOfEach returns the body of an apply for each kind.
func oneOfEach(namespace string) []map[string]any {
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/image:1"}}},
	}
	once := *pods.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	objects := []client.Object{
		&corev1.ConfigMap{Data: map[string]string{"a": "1"}},
		&corev1.Secret{Data: map[string][]byte{"a": []byte("1")}},
		&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ServiceAccount{AutomountServiceAccountToken: new(false)},
		&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}},
		}},
		&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods, ServiceName: "x", Replicas: new(int32(0))}},
		&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods, Replicas: new(int32(0))}},
		&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pods}},
		&batchv1.Job{Spec: batchv1.JobSpec{Template: once, Suspend: new(true)}},
		&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
		&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}},
		&autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: 2, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"},
		}},
		&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "x"}},
		&widget.Widget{Spec: widget.Spec{Text: "x"}},
		&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"},
			},
		}},
		&corev1.Namespace{},
		&storagev1.StorageClass{Provisioner: "x"},
		&storagev1.CSIDriver{},
		&rbacv1.ClusterRole{},
		&rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "x"}},
	}
	var bodies []map[string]any
	for _, object := range objects {
		gvk := mustGVK(object)
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			panic(err) //nolint:forbidigo // the test itself is wrong
		}
		delete(body, "status")
		metadata := map[string]any{"name": namespace + "-x"}
		if !clusterWide[gvk.Kind] {
			metadata["namespace"] = namespace
		}
		if gvk.Kind == "CSIDriver" {
			body["spec"] = map[string]any{"attachRequired": false}
		}
		body["metadata"], body["apiVersion"], body["kind"] = metadata, gvk.GroupVersion().String(), gvk.Kind
		bodies = append(bodies, body)
	}
	return bodies
}

// forgetfulClient omits a field from applied objects.
type forgetfulClient struct {
	client.Client
	field string
}

func (c forgetfulClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	unstructured.RemoveNestedField(bodyOf(obj).Object, "metadata", c.field)
	return c.Client.Apply(ctx, obj, opts...)
}

// adoptingReader adds the label of the widget with the same name to the objects it reads.
type adoptingReader struct{ client.Reader }

func (r adoptingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		var cr widget.Widget
		if err := r.Reader.Get(ctx, key, &cr); err == nil {
			obj.SetLabels(map[string]string{"asterism.dev/owner-uid": string(cr.UID)})
			obj.SetOwnerReferences(nil)
		}
	}
	return nil
}
