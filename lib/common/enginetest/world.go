package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// World is a namespace of a real API server with a running operator and a simulated kubelet.
// A call that fails, fails the test.
type World struct {
	Namespace string
	// Client reads and writes without a cache.
	Client client.Client
	// Operator is the running operator; nil until Run.
	Operator *Operator

	t      testing.TB
	scheme *runtime.Scheme
}

// NewWorld creates a namespace with a kubelet and without an operator.
func NewWorld(t testing.TB, kubelet Kubelet, addToScheme ...func(*runtime.Scheme) error) *World {
	t.Helper()
	w := &World{t: t, Namespace: Namespace(t), Client: Client(t, addToScheme...), scheme: Scheme(t, addToScheme...)}
	t.Cleanup(w.release)
	kubelet.Start(t, w.Namespace)
	return w
}

// release removes the finalizers of Asterism objects after the operator has ended. Otherwise
// the namespace would never be deleted.
func (w *World) release() {
	for gvk := range w.scheme.AllKnownTypes() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if !strings.HasSuffix(gvk.Group, "asterism.dev") || !strings.HasSuffix(gvk.Kind, "List") ||
			w.Client.List(context.Background(), list, client.InNamespace(w.Namespace)) != nil {
			continue // not an Asterism kind, or not served
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
			if err := w.Client.Patch(context.Background(), &object, patch); client.IgnoreNotFound(err) != nil {
				w.t.Errorf("releasing %s %s: %v", object.Kind, object.Name, err)
			}
		}
	}
}

// Run starts the services as the operator of the namespace. It stops a running operator
// before.
func (w *World) Run(services ...Runnable) {
	w.t.Helper()
	if w.Operator != nil {
		w.Operator.Stop()
	}
	w.Operator = Run(w.t, w.Namespace, w.scheme, services...)
}

// Create creates the objects in the namespace.
func (w *World) Create(objs ...client.Object) {
	w.t.Helper()
	for _, obj := range objs {
		obj.SetNamespace(w.Namespace)
		if err := w.Client.Create(context.Background(), obj); err != nil {
			w.t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// Read reads the object; it returns false if the object does not exist.
func (w *World) Read(obj client.Object) bool {
	w.t.Helper()
	obj.SetNamespace(w.Namespace)
	err := w.Client.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatalf("reading %T %s: %v", obj, obj.GetName(), err)
	}
	return err == nil
}

// Change reads the object, changes it, and sends the difference.
func (w *World) Change(obj client.Object, change func()) {
	w.t.Helper()
	w.patch(obj, change, func(patch client.Patch) error { return w.Client.Patch(context.Background(), obj, patch) })
}

// ChangeStatus is Change for the status.
func (w *World) ChangeStatus(obj client.Object, change func()) {
	w.t.Helper()
	w.patch(obj, change, func(patch client.Patch) error {
		return w.Client.Status().Patch(context.Background(), obj, patch)
	})
}

func (w *World) patch(obj client.Object, change func(), send func(client.Patch) error) {
	w.t.Helper()
	if !w.Read(obj) {
		w.t.Fatalf("%T %s does not exist", obj, obj.GetName())
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	change()
	if err := send(client.MergeFrom(before)); err != nil {
		w.t.Fatalf("changing %T %s: %v", obj, obj.GetName(), err)
	}
}

// Delete deletes the object with a propagation policy for its children.
func (w *World) Delete(obj client.Object, policy metav1.DeletionPropagation) {
	w.t.Helper()
	if err := w.Client.Delete(context.Background(), obj, client.PropagationPolicy(policy)); err != nil {
		w.t.Fatalf("deleting %T %s: %v", obj, obj.GetName(), err)
	}
}

// Scale scales the object like `kubectl scale`.
func (w *World) Scale(obj client.Object, replicas int64) {
	w.t.Helper()
	if err := w.Client.SubResource("scale").Update(context.Background(), obj, client.WithSubResourceBody(scaleTo(obj, replicas))); err != nil {
		w.t.Fatalf("scaling %T %s: %v", obj, obj.GetName(), err)
	}
}

// Apply applies the object with the field owner, without force.
func (w *World) Apply(obj client.Object, owner string) {
	w.t.Helper()
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		w.t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	body := &unstructured.Unstructured{Object: content}
	body.SetGroupVersionKind(gvk)
	body.SetNamespace(w.Namespace)
	delete(body.Object, "status")
	if err := w.Client.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(owner)); err != nil {
		w.t.Fatalf("applying %s %s: %v", gvk.Kind, obj.GetName(), err)
	}
}

// Written returns the writes since the last Reset of the requests, as "verb resource name".
func (w *World) Written() []string {
	var all []string
	for _, request := range w.Operator.Requests.Writes() {
		resource := request.Resource
		if request.Subresource != "" {
			resource += "/" + request.Subresource
		}
		all = append(all, request.Verb+" "+resource+" "+request.Name)
	}
	return all
}

// AwaitNothing waits until no object of the kinds belongs to the owner.
func (w *World) AwaitNothing(owner types.UID, kinds ...client.Object) {
	w.t.Helper()
	if len(kinds) == 0 {
		w.t.Fatal("no kinds are given")
	}
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, w.scheme)
		if err != nil {
			w.t.Fatal(err)
		}
		Eventually(w.t, "no "+gvk.Kind+" is left", func() error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			err := w.Client.List(context.Background(), list, client.InNamespace(w.Namespace), client.MatchingLabels{"asterism.dev/owner-uid": string(owner)})
			if err != nil || len(list.Items) == 0 {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("%s and %d more are left", list.Items[0].Name, len(list.Items)-1)
		})
	}
}
