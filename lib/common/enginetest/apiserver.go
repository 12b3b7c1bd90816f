package enginetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// startServer is the instruction to start an API server for the suites.
const startServer = `in the repository's root, type
  make test-server && export KUBECONFIG=$PWD/.testserver/kubeconfig
or let "make test" do both`

// Config returns the configuration for the API server in KUBECONFIG. Without KUBECONFIG, or
// with an API server on another machine, the test fails with an instruction: suites install
// CustomResourceDefinitions, and must not do so in a cluster by accident.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatalf("KUBECONFIG is not set, so there is no API server to test against; %s", startServer)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("KUBECONFIG %s: %v; %s", path, err, startServer)
	}
	if err := onThisMachine(config.Host); err != nil {
		t.Fatalf("KUBECONFIG %s: %v; %s", path, err, startServer)
	}
	// Suites count requests: the client must not delay them.
	config.QPS = -1
	return config
}

func onThisMachine(server string) error {
	address, err := url.Parse(server)
	if err != nil {
		return err
	}
	host := address.Hostname()
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is not on this machine, and suites change what is installed in a cluster", server)
}

// newClient returns a client without a cache, with types for built-in kinds and unstructured
// objects for all other kinds.
func newClient(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(Config(t), client.Options{})
	if err != nil {
		t.Fatalf("connecting to the API server: %v; %s", err, startServer)
	}
	return c
}

// Namespace creates a namespace for the test and returns its name. The namespace is deleted
// when the test ends, in the background.
func Namespace(t testing.TB) string {
	t.Helper()
	c := newClient(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(context.Background(), namespace); err != nil {
		t.Fatalf("creating a namespace: %v; %s", err, startServer)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// InstallCRDs applies every CustomResourceDefinition in the directories, which are relative
// to the test's package, and waits until the kinds are served. Several suites may do so at
// the same time. The definitions stay installed.
func InstallCRDs(t testing.TB, dirs ...string) {
	t.Helper()
	c := newClient(t)
	var applied []*unstructured.Unstructured
	for _, dir := range dirs {
		for _, definition := range readDefinitions(t, dir) {
			configuration := client.ApplyConfigurationFromUnstructured(definition.DeepCopy())
			if err := c.Apply(context.Background(), configuration, client.FieldOwner("enginetest"), client.ForceOwnership); err != nil {
				t.Fatalf("applying %s from %s: %v", definition.GetName(), dir, err)
			}
			applied = append(applied, definition)
		}
	}
	for _, definition := range applied {
		waitEstablished(t, c, definition)
		waitDiscovered(t, definition)
	}
}

// definitionFiles returns the paths of the CustomResourceDefinitions in a directory: every
// YAML file except kustomization.yaml. dir may also be the path of one file.
func definitionFiles(t testing.TB, dir string) []string {
	t.Helper()
	if filepath.Ext(dir) == ".yaml" {
		return []string{dir}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	paths = slices.DeleteFunc(paths, func(path string) bool { return filepath.Base(path) == "kustomization.yaml" })
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CustomResourceDefinition in %s (error: %v): type \"make generate\"", dir, err)
	}
	return paths
}

func readDefinitions(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	var definitions []*unstructured.Unstructured
	for _, path := range definitionFiles(t, dir) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &definition.Object); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions
}

func waitEstablished(t testing.TB, c client.Client, definition *unstructured.Unstructured) {
	t.Helper()
	current := definition.DeepCopy()
	var seen string
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), current); err != nil {
			return false, err
		}
		// status.conditions is null at first, which NestedSlice reports as an error
		conditions, _, _ := unstructured.NestedSlice(current.Object, "status", "conditions")
		seen = fmt.Sprint(conditions)
		return conditionIsTrue(conditions, "Established"), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s to be established: %v; its conditions: %s", definition.GetName(), err, seen)
	}
}

// waitDiscovered waits until discovery lists the kind: a client that calls discovery too
// early would not see the kind later.
func waitDiscovered(t testing.TB, definition *unstructured.Unstructured) {
	t.Helper()
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	var missing error
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, missing = newClient(t).RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s to be discovered: %v; %v", definition.GetName(), err, missing)
	}
}

func conditionIsTrue(conditions []any, name string) bool {
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == name && c["status"] == "True" {
			return true
		}
	}
	return false
}
