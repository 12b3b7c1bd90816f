package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	"asterism.dev/tools/internal/checkout"
)

var wantedPlane = object{resource: controlPlanes, kind: "ControlPlane", name: controlPlane}

// serve returns a fake API server with the objects of a fixture.
func serve(t *testing.T, fixture string) *kube {
	t.Helper()
	nova := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "nova." + group, Version: "v1alpha1", Resource: resource}
	}
	served := map[schema.GroupVersionResource]string{
		controlPlanes: "ControlPlaneList", novaCells: "NovaCellList", nova("novas"): "NovaList", nova("novaconductors"): "NovaConductorList",
		deployments: "DeploymentList", statefulSets: "StatefulSetList", replicaSets: "ReplicaSetList", jobs: "JobList", pods: "PodList",
	}
	typed := kubernetesfake.NewClientset()
	var objects []runtime.Object
	for _, o := range readObjects(t, fixture) {
		o.SetNamespace(namespace)
		objects = append(objects, o)
	}
	for resource := range served {
		if strings.HasSuffix(resource.Group, group) {
			typed.Resources = append(typed.Resources, &metav1.APIResourceList{
				GroupVersion: resource.GroupVersion().String(),
				APIResources: []metav1.APIResource{{Name: resource.Resource, Namespaced: true, Verbs: metav1.Verbs{"list"}}},
			})
		}
	}
	return &kube{objects: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), served, objects...), typed: typed, stallCheck: time.Hour}
}

func TestAwaitShowsTheMessageUntilTheObjectIsReady(t *testing.T) {
	k := serve(t, "stalled.yaml")
	said := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- k.await(t.Context(), wantedPlane, func(message string) { said <- message }) }()
	if message := <-said; message != "Nova demo: cells: line 1: no" {
		t.Errorf("said %q", message)
	}
	plane, err := k.in(controlPlanes, namespace).Get(t.Context(), controlPlane, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := []any{map[string]any{"type": "Ready", "status": "True", "reason": "Complete", "message": ""}}
	if err := unstructured.SetNestedSlice(plane.Object, ready, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.in(controlPlanes, namespace).Update(t.Context(), plane, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAwaitEndsWhenAnObjectBelowIsStalled(t *testing.T) {
	k := serve(t, "stalled.yaml")
	k.stallCheck = time.Millisecond
	err := k.await(t.Context(), wantedPlane, func(string) {})
	missing := &notReadyError{}
	if !errors.Is(err, errStalled) || !errors.As(err, &missing) || missing.message != "Nova demo: cells: line 1: no" {
		t.Errorf("got %v", err)
	}
}

func TestAwaitContinuesWhileNothingIsStalled(t *testing.T) {
	k := serve(t, "job-failed.yaml")
	k.stallCheck = time.Millisecond
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
	d := &demo{root: root, dir: filepath.Join(root, ".cluster"), kube: serve(t, "job-failed.yaml")}
	failure := &stepError{step: stepNova, err: &notReadyError{object: wantedPlane, message: "Job failed", err: errors.New("gave up after 10m0s")}}
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
