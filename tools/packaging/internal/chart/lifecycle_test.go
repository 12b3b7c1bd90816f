package chart_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const timeout = time.Minute // of each action; the API server has no kubelet, so no action waits for pods

// helmIn returns Helm's actions in a namespace. Releases are stored in Secrets, as by default.
func helmIn(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.SetNamespace(namespace)
	configuration := action.NewConfiguration()
	if err := configuration.Init(settings.RESTClientGetter(), namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return configuration
}

// helmInstall also takes over definitions that another suite has installed.
func helmInstall(t *testing.T, namespace, release, name string, given map[string]any) {
	t.Helper()
	install := action.NewInstall(helmIn(t, namespace))
	install.ReleaseName, install.Namespace, install.Timeout = release, namespace, timeout
	install.WaitStrategy, install.TakeOwnership, install.ForceConflicts = kube.HookOnlyStrategy, true, true
	if _, err := install.RunWithContext(t.Context(), load(t, name), given); err != nil {
		t.Fatalf("helm install %s: %v", name, err)
	}
}

func helmUpgrade(t *testing.T, namespace, release, name string, given map[string]any) error {
	t.Helper()
	upgrade := action.NewUpgrade(helmIn(t, namespace))
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy, upgrade.ResetThenReuseValues = namespace, timeout, kube.HookOnlyStrategy, true
	_, err := upgrade.RunWithContext(t.Context(), release, load(t, name), given)
	return err
}

func helmUninstall(t *testing.T, namespace, release string) {
	t.Helper()
	uninstall := action.NewUninstall(helmIn(t, namespace))
	uninstall.Timeout, uninstall.WaitStrategy = timeout, kube.HookOnlyStrategy
	uninstall.DisableHooks = true // no kubelet runs the Jobs here
	if _, err := uninstall.Run(release); err != nil {
		t.Fatalf("helm uninstall %s: %v", release, err)
	}
}

// get returns an object, nil if it does not exist.
func get(ctx context.Context, t *testing.T, c client.Client, version, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestHelmInstallsUpgradesAndUninstalls(t *testing.T) {
	ctx := t.Context()
	c := connect(t)
	own, handed := newNamespace(ctx, t, c), newNamespace(ctx, t, c)
	scheduler := func() *unstructured.Unstructured {
		return get(ctx, t, c, "nova.asterism.dev/v1alpha1", "NovaScheduler", handed, "scheduler")
	}
	deployment := func() *unstructured.Unstructured {
		return get(ctx, t, c, "apps/v1", "Deployment", own, "asterism-nova-operator")
	}

	helmInstall(t, own, "operators", "asterism", values(t, "global: {asterism: {watchNamespaces: ["+handed+"]}}"))
	helmInstall(t, handed, "scheduler", "nova-scheduler", examples(t, "nova-scheduler")["scheduler-values.yaml"])
	if get(ctx, t, c, "rbac.authorization.k8s.io/v1", "RoleBinding", handed, "asterism-nova-operator") == nil || scheduler() == nil {
		t.Fatal("the namespace is not handed over, or has no NovaScheduler")
	}

	if err := helmUpgrade(t, own, "operators", "asterism", values(t, "nova-operator: {replicas: 2}")); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(deployment().Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("the upgrade leaves %d replicas", replicas)
	}
	if get(ctx, t, c, "rbac.authorization.k8s.io/v1", "RoleBinding", handed, "asterism-nova-operator") == nil {
		t.Error("the upgrade takes the namespace back")
	}
	err := helmUpgrade(t, own, "operators", "asterism", values(t, "nova-operator: {replica: 2}"))
	if err == nil || !strings.Contains(err.Error(), "additional properties 'replica' not allowed") {
		t.Errorf("an upgrade with a misspelt value ends with %v", err)
	}

	helmUninstall(t, own, "operators")
	if deployment() != nil {
		t.Error("the operator remains")
	}
	if scheduler() == nil || get(ctx, t, c, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "novaschedulers.nova.asterism.dev") == nil {
		t.Error("the removal of the operators deletes resources")
	}
	helmUninstall(t, handed, "scheduler")
	if scheduler() != nil {
		t.Error("the NovaScheduler remains")
	}
}
