package enginetest

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Smoke creates the CR of every fixture in a real API server, which checks it with schema and
// rules, and applies every child. Both are dry runs: the operator of another suite never sees
// the CR.
func (s Subject[T]) Smoke(t *testing.T) {
	InstallCRDs(t, s.crds(t)...)
	c := Client(t, s.AddToScheme...)
	namespace := Namespace(t)
	for _, f := range s.fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			created := f.cr.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
			created.SetNamespace(namespace)
			created.SetUID("")
			created.SetGeneration(0)
			if err := c.Create(context.Background(), created, client.DryRunAll); err != nil {
				t.Fatalf("%s: %v", f.cr.GetName(), err)
			}
			f := f.in(namespace, created)
			for _, child := range s.record(t, f, nil).applied {
				s.try(t, c, child)
			}
		})
	}
}

func (s Subject[T]) try(t *testing.T, c client.Client, child appliedChild) {
	t.Helper()
	if kind := child.GetKind(); kind == "Route" || kind == "HTTPRoute" {
		InstallExposures(t)
	}
	err := c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(child.DeepCopy()),
		client.FieldOwner(s.Service.Name), client.ForceOwnership, client.DryRunAll)
	if err != nil {
		t.Errorf("%s: %s %s: %v", child.stage, child.GetKind(), child.GetName(), err)
	}
}

// in returns a copy of the fixture in the namespace of its created CR.
func (f fixture[T]) in(namespace string, created metav1.Object) fixture[T] {
	moved := f
	moved.cr = f.cr.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
	moved.cr.SetNamespace(namespace)
	moved.cr.SetUID(created.GetUID())
	moved.objects = nil
	for _, object := range f.objects {
		object = object.DeepCopy()
		if object.GetNamespace() == f.cr.GetNamespace() {
			object.SetNamespace(namespace)
		}
		if object.GetKind() == namespaceKind && object.GetName() == f.cr.GetNamespace() {
			object.SetName(namespace)
		}
		moved.objects = append(moved.objects, object)
	}
	return moved
}
