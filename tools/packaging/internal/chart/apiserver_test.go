package chart_test

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// warnings are the API server's warnings, such as that of a deprecated version.
type warnings struct{ t *testing.T }

// HandleWarningHeader fails the test.
func (w warnings) HandleWarningHeader(_ int, _, message string) { w.t.Errorf("warning: %s", message) }

// connect returns a client of the API server of `make test-server`.
func connect(t *testing.T) client.Client {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG is not set; in the repository's root, type: make test-server && export KUBECONFIG=$PWD/.testserver/kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if host, err := url.Parse(config.Host); err != nil || !slices.Contains([]string{"127.0.0.1", "localhost"}, host.Hostname()) {
		t.Fatalf("%s is not on this machine, and the test installs CustomResourceDefinitions", config.Host)
	}
	config.QPS = -1
	config.WarningHandler = rest.WarningHandler(warnings{t})
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	return c
}

// newNamespace creates a namespace in which pods have the limits of the operators' own.
func newNamespace(ctx context.Context, t *testing.T, c client.Client) string {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Namespace")
	object.SetGenerateName("charts-")
	object.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"})
	if err := c.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	return object.GetName()
}

// install applies the definitions of the umbrella, without which a service's resource has no
// kind.
func install(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	objects, _ := render(t, "asterism", namespace, values(t, "operators: {shared-volume: true}"))
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("charts-test"), client.ForceOwnership); err != nil {
			t.Fatalf("%s: %v", id(object), err)
		}
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := c.Get(ctx, client.ObjectKeyFromObject(object), crd)
			return slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
			}), err
		})
		if err != nil {
			t.Fatalf("%s is not served: %v", id(object), err)
		}
	}
}

func TestAnAPIServerAcceptsEveryObject(t *testing.T) {
	ctx := t.Context()
	c := connect(t)
	install(ctx, t, c)
	own, handed := newNamespace(ctx, t, c), newNamespace(ctx, t, c)
	cases := map[string][]map[string]any{
		"asterism": {
			values(t, "{operators: {shared-volume: true}, global: {asterism: {watchNamespaces: ["+handed+"]}}}"),
			values(t, `global: {asterism: {watchNamespaces: "*"}}`),
		},
		"nova-operator": {values(t, strings.ReplaceAll(everyValue, "openstack", handed))},
		"shared-volume": {values(t, "{spec: {fileSystemID: fs-484648c8, accessPointID: fsap-097bd0daaba932e64}, policies: {team-a: {namespaces: {names: [team-a]}, fileSystems: [{fileSystemID: fs-484648c8, accessPointIDs: [fsap-097bd0daaba932e64]}]}}}")},
	}
	for _, name := range names(t) {
		for _, example := range examples(t, name) {
			cases[name] = append(cases[name], example)
		}
		for _, given := range cases[name] {
			objects, _ := render(t, name, own, given)
			for _, object := range objects {
				if namespaced, err := c.IsObjectNamespaced(object); err != nil || namespaced != (object.GetNamespace() != "") {
					t.Errorf("chart %s: %s: namespaced is %t (%v)", name, id(object), namespaced, err)
				}
				err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("charts-test"), client.ForceOwnership)
				if err != nil {
					t.Errorf("chart %s: %s: %v", name, id(object), err)
				}
			}
		}
	}
}
