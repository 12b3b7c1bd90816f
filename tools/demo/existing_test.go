package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/tools/internal/demoimage"
	"asterism.dev/tools/internal/source"
)

var (
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	secretKind    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// id identifies an object.
type id struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// onExistingCluster returns a demo with CLUSTER=existing and tiny operators, on the API server of
// `make test-server`. It has controllers, and neither nodes nor a kubelet.
func onExistingCluster(t *testing.T) *demo {
	t.Helper()
	kubeconfig := os.Getenv("KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if kubeconfig == "" || err != nil {
		t.Fatalf("no API server: %v; in the repository's root, type: make test-server && export KUBECONFIG=$PWD/.testserver/kubeconfig", err)
	}
	if host, err := url.Parse(config.Host); err != nil || host.Hostname() != "127.0.0.1" {
		t.Fatalf("%s is not on this machine, and the test installs operators", config.Host)
	}
	path, err := exec.CommandContext(t.Context(), "bash", "-c", `. "$0" && echo -n "$PATH"`, filepath.Join(filepath.Dir(kubeconfig), "env")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PATH": string(path), "CLUSTER": "existing", "IMAGE_REGISTRY": startRegistry(t, nil) + "/some/path", "OPERATORS": "", "RELEASE": "", "LIBVIRT": "",
	} {
		t.Setenv(name, value)
	}
	d, err := newDemo("", 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	d.root = inTinyCopy(t).root
	d.dir = filepath.Join(d.root, ".cluster")
	if d.kube, err = newKube(d.env); err != nil {
		t.Fatal(err)
	}
	d.remove(t, id{kind: namespaceKind, name: systemNamespace}, id{kind: namespaceKind, name: namespace}) // of an interrupted test
	return d
}

// stored returns an object of the cluster, or nil.
func (d *demo) stored(o id) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(o.kind)
	if d.kube.Get(context.Background(), client.ObjectKey{Namespace: o.namespace, Name: o.name}, found) != nil {
		return nil
	}
	return found
}

// remove deletes objects, and waits for their end.
func (d *demo) remove(t *testing.T, objects ...id) {
	t.Helper()
	for _, o := range objects {
		until(t, fmt.Sprint("the end of ", o), func() bool {
			found := d.stored(o)
			return found == nil || d.kube.Delete(context.Background(), found) != nil && d.stored(o) == nil
		})
	}
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 200*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// applied returns the objects that the demo must write.
func (d *demo) applied(t *testing.T) []id {
	t.Helper()
	all := []id{{kind: controlPlaneKind, name: controlPlane, namespace: namespace}}
	for _, name := range []string{"mariadb-admin", "rabbitmq-default-user", "keystone-admin"} {
		all = append(all, id{kind: secretKind, name: name, namespace: namespace})
	}
	handOver := filepath.Join(d.root, "config", "namespace")
	for _, folder := range []string{d.work("operators"), d.work("demo"), d.work("demo-services"), handOver} {
		rendered, err := source.Render(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendered {
			if folder == handOver {
				o.SetNamespace(namespace)
			}
			all = append(all, id{kind: o.GroupVersionKind(), name: o.GetName(), namespace: o.GetNamespace()})
		}
	}
	return all
}

// upToPods runs the demo until the next step is a command in a pod. Meanwhile, pods are reported
// as ready, as a kubelet does, except for those of Glance. It returns the objects in the cluster.
func (d *demo) upToPods(t *testing.T) map[id]*unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, running := make(chan error, 1), *d // its steps set fields that are read below
	go func() { done <- running.up(ctx) }()
	until(t, "the ControlPlane, Glance and Neutron", func() bool {
		select {
		case err := <-done:
			t.Fatalf("the demo ended: %v", err)
		default:
		}
		var pods corev1.PodList
		if err := d.kube.WithWatch.List(ctx, &pods); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if pod.Namespace == systemNamespace || pod.Namespace == namespace && !strings.HasPrefix(pod.Name, "glance-") {
				before := client.MergeFrom(pod.DeepCopy())
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				pod.Status.Phase = corev1.PodRunning
				_ = d.kube.Status().Patch(ctx, &pod, before) // a pod that is gone is not listed again
			}
		}
		return d.stored(id{kind: controlPlaneKind, name: controlPlane, namespace: namespace}) != nil &&
			d.stored(id{kind: cluster.Deployment, name: "neutron", namespace: namespace}) != nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted demo ended with %v", err)
	}
	*d = running
	objects := map[id]*unstructured.Unstructured{}
	for _, o := range d.applied(t) {
		if objects[o] = d.stored(o); objects[o] == nil {
			t.Fatalf("the cluster lacks %v", o)
		}
	}
	return objects
}

func TestExistingClusterGetsOperatorsAndControlPlane(t *testing.T) {
	d := onExistingCluster(t)
	pushOpenStack(t, d, strings.Join(demoimage.Packages(d.release), " "))
	first := d.upToPods(t)
	t.Cleanup(func() { // the CRDs stay, as other suites use them
		for o := range first {
			if o.namespace == "" && o.kind != definitionKind {
				d.remove(t, o)
			}
		}
	})
	d.checkImages(t, first)
	for _, path := range []string{d.dir, d.work("bin", "cluster"), d.driverArchive()} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s of the embedded cluster exists: %v", path, err)
		}
	}
	for o, again := range d.upToPods(t) {
		if before, after := change(t, first[o]), change(t, again); before != after {
			t.Errorf("the second run changed %v: %s, then %s", o, before, after)
		}
	}
}

// change identifies the last change of an object by the demo or its scripts.
func change(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	if o.GetKind() == secretKind.Kind {
		return o.GetResourceVersion()
	}
	own := slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != fieldManager })
	if len(own) == 0 {
		t.Errorf("%s %s has no field of the demo", o.GetKind(), o.GetName())
	}
	return fmt.Sprint(o.GetUID(), o.GetGeneration(), own)
}

// checkImages compares the images with those of the registry, and counts the operators and CRDs.
func (d *demo) checkImages(t *testing.T, objects map[id]*unstructured.Unstructured) {
	t.Helper()
	crds, operators := d.checkOperators(t, objects), 0
	for o, stored := range objects {
		switch {
		case o.kind == definitionKind:
			crds--
		case o.kind == cluster.Deployment && o.namespace == systemNamespace:
			operators++
		}
		for _, image := range imagesIn(stored.Object["spec"]) {
			if err := pull(image); err != nil || o.namespace == namespace && image != d.openStack() {
				t.Errorf("%v has image %s, %v", o, image, err)
			}
		}
	}
	if operators != 8 || len(d.tags) != 8 || crds != 0 {
		t.Errorf("%d operators of %d, and %d CRDs are missing", operators, len(d.tags), crds)
	}
	plane := objects[id{kind: controlPlaneKind, name: controlPlane, namespace: namespace}]
	if image, _, err := unstructured.NestedString(plane.Object, "spec", "containerImage"); err != nil || image != d.openStack() {
		t.Errorf("the ControlPlane has image %s, %v", image, err)
	}
}

// checkOperators compares the image of each operator, and returns the number of their CRDs.
func (d *demo) checkOperators(t *testing.T, objects map[id]*unstructured.Unstructured) (crds int) {
	t.Helper()
	for operator, tag := range d.tags {
		files, err := filepath.Glob(filepath.Join(d.root, "operators", operator, "config", "crd", "*_*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		crds += len(files)
		deployed := objects[id{kind: cluster.Deployment, name: operatorDeployment(operator).name, namespace: systemNamespace}]
		if want := d.image(operatorImage(operator)) + ":" + tag; deployed == nil || !slices.Equal(imagesIn(deployed.Object["spec"]), []string{want}) {
			t.Errorf("the operator %s does not have image %s: %v", operator, want, deployed)
		}
	}
	return crds
}

func TestExistingClusterIsUntouchedAfterAnEarlyFault(t *testing.T) {
	d := onExistingCluster(t)
	kubeconfig, guest := os.Getenv("KUBECONFIG"), filepath.Join(t.TempDir(), "kubeconfig")
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "guest"
	}
	if err := clientcmd.WriteToFile(*config, guest); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ registry, kubeconfig, want string }{
		{d.registry, guest, stepConnection + ": the account of KUBECONFIG may not create "},
		{"127.0.0.1:1/demo", kubeconfig, stepOpenStack + ": the registry of IMAGE_REGISTRY does not answer: set IMAGE_REGISTRY to "},
	} {
		t.Setenv("KUBECONFIG", test.kubeconfig)
		faulty := *d
		faulty.registry, faulty.env = test.registry, os.Environ()
		if err := faulty.up(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v instead of %s", err, test.want)
		}
		for _, name := range []string{systemNamespace, namespace} {
			if d.stored(id{kind: namespaceKind, name: name}) != nil {
				t.Errorf("after %q, there is a namespace %s", test.want, name)
			}
		}
	}
}
