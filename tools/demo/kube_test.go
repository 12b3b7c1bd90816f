package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"asterism.dev/cli/cluster"
	"asterism.dev/tools/internal/checkout"
)

var wantedPlane = object{kind: controlPlaneKind, name: controlPlane}

// serve returns a client of an API server with objects.
func serve(objects ...client.Object) *kube {
	return &kube{pause: time.Millisecond, Cluster: &cluster.Cluster{
		WithWatch: fake.NewClientBuilder().WithScheme(cluster.Scheme).WithObjects(objects...).Build(),
		Logs: func(context.Context, types.NamespacedName, *corev1.PodLogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("fake logs")), nil
		},
	}}
}

// fixture returns the objects of a file, in the demo's namespace.
func fixture(t *testing.T, name string) (objects []client.Object) {
	t.Helper()
	for _, o := range readObjects(t, name) {
		o.SetNamespace(namespace)
		objects = append(objects, o)
	}
	return objects
}

func TestAwaitShowsTheMessageUntilTheObjectIsReady(t *testing.T) {
	k := serve(fixture(t, "job-failed.yaml")...)
	said := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- k.await(t.Context(), wantedPlane, func(message string) { said <- message }) }()
	if message := <-said; message != "Nova demo: NovaConductor demo-superconductor: Job failed" {
		t.Errorf("said %q", message)
	}
	plane := &unstructured.Unstructured{}
	plane.SetGroupVersionKind(controlPlaneKind)
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: controlPlane}, plane); err != nil {
		t.Fatal(err)
	}
	ready := []any{map[string]any{"type": "Ready", "status": "True", "reason": "Complete", "message": ""}}
	if err := unstructured.SetNestedSlice(plane.Object, ready, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if err := k.Update(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(said) > 0 {
		t.Errorf("said more than once: %q", <-said)
	}
}

func TestAwaitEndsWhenAnObjectBelowIsStalled(t *testing.T) {
	k := serve(fixture(t, "stalled.yaml")...)
	err := k.await(t.Context(), wantedPlane, func(string) {})
	missing := &notReadyError{}
	if !errors.Is(err, errStalled) || !errors.As(err, &missing) || missing.message != "Nova demo: cells: line 1: no" {
		t.Errorf("got %v", err)
	}
}

func TestAwaitContinuesWhileNothingIsStalled(t *testing.T) {
	k := serve(fixture(t, "job-failed.yaml")...)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("gave up"))
	defer cancel()
	if err := k.await(ctx, wantedPlane, func(string) {}); err == nil || errors.Is(err, errStalled) || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("got %v", err)
	}
}

func TestFailureIsExplainedWithTheLogOfTheFailedPod(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{root: root, dir: filepath.Join(root, ".cluster"), kube: serve(fixture(t, "job-failed.yaml")...)}
	failure := fmt.Errorf("%s: %w", stepNova, &notReadyError{object: wantedPlane, message: "Job failed", err: errors.New("gave up after 10m0s")})
	text := d.explain(t.Context(), failure).Error()
	for _, want := range []string{
		stepNova + ": gave up after 10m0s",
		"NovaConductor/demo-superconductor SchemaReady JobFailed",
		"container db-sync: ended with exit code 1: Access denied for user",
		"Last lines of container db-sync of Pod/demo-superconductor-db-1234abcd-x7k2p:\n  fake logs",
		". .cluster/env",
		"kubectl describe pod/demo-superconductor-db-1234abcd-x7k2p --namespace openstack",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
