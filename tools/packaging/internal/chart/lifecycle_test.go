package chart_test

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const timeout = 4 * time.Minute // of each action; the API server has no kubelet, so no action waits for pods

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

// takeOver lets an installation replace definitions that another suite has installed.
func takeOver(install *action.Install) { install.TakeOwnership, install.ForceConflicts = true, true }

func helmInstall(t *testing.T, namespace, release, name string, given map[string]any, options ...func(*action.Install)) {
	t.Helper()
	install := action.NewInstall(helmIn(t, namespace))
	install.ReleaseName, install.Namespace, install.Timeout, install.WaitStrategy = release, namespace, timeout, kube.HookOnlyStrategy
	for _, option := range options {
		option(install)
	}
	if _, err := install.RunWithContext(t.Context(), load(t, name), given); err != nil {
		t.Fatalf("helm install %s: %v", name, err)
	}
}

// helmUpgrade is `helm upgrade --reset-then-reuse-values`.
func helmUpgrade(t *testing.T, namespace, release string, to *helm.Chart, given map[string]any, options ...func(*action.Upgrade)) error {
	t.Helper()
	upgrade := action.NewUpgrade(helmIn(t, namespace))
	upgrade.Namespace, upgrade.Timeout, upgrade.WaitStrategy, upgrade.ResetThenReuseValues = namespace, timeout, kube.HookOnlyStrategy, true
	for _, option := range options {
		option(upgrade)
	}
	_, err := upgrade.RunWithContext(t.Context(), release, to, given)
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

const (
	crdVersion     = "apiextensions.k8s.io/v1"
	bindingVersion = "rbac.authorization.k8s.io/v1"
	schedulerCRD   = "novaschedulers.nova.asterism.dev"
)

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
	operators := values(t, "global: {asterism: {watchNamespaces: ["+handed+"]}}")

	helmInstall(t, own, "operators", "asterism", operators, takeOver)
	helmInstall(t, handed, "scheduler", "nova-scheduler", examples(t, "nova-scheduler")["scheduler-values.yaml"])
	if get(ctx, t, c, bindingVersion, "RoleBinding", handed, "asterism-nova-operator") == nil || scheduler() == nil {
		t.Fatal("the namespace is not handed over, or has no NovaScheduler")
	}

	if err := helmUpgrade(t, own, "operators", load(t, "asterism"), values(t, "nova-operator: {replicas: 2}")); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(deployment().Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("the upgrade leaves %d replicas", replicas)
	}
	if get(ctx, t, c, bindingVersion, "RoleBinding", handed, "asterism-nova-operator") == nil {
		t.Error("the upgrade takes the namespace back")
	}
	err := helmUpgrade(t, own, "operators", load(t, "asterism"), values(t, "nova-operator: {replica: 2}"))
	if err == nil || !strings.Contains(err.Error(), "additional properties 'replica' not allowed") {
		t.Errorf("an upgrade with a misspelt value ends with %v", err)
	}

	helmUninstall(t, own, "operators")
	if deployment() != nil {
		t.Error("the operator remains")
	}
	if scheduler() == nil || get(ctx, t, c, crdVersion, "CustomResourceDefinition", "", schedulerCRD) == nil {
		t.Error("the removal of the operators deletes resources")
	}

	helmInstall(t, own, "operators", "asterism", operators) // the definitions still belong to the release
	if deployment() == nil || scheduler() == nil {
		t.Error("the same release cannot be installed again")
	}
	helmUninstall(t, own, "operators")
	helmUninstall(t, handed, "scheduler")
	if scheduler() != nil {
		t.Error("the NovaScheduler remains")
	}
}

func TestHelmUpgradesDefinitions(t *testing.T) {
	ctx := t.Context()
	c := connect(t)
	own := newNamespace(ctx, t, c)
	helmInstall(t, own, "scheduler", "nova-scheduler-operator", map[string]any{}, takeOver)
	defer helmUninstall(t, own, "scheduler")
	shortNames := func() (names []string) {
		names, _, _ = unstructured.NestedStringSlice(get(ctx, t, c, crdVersion, "CustomResourceDefinition", "", schedulerCRD).Object, "spec", "names", "shortNames")
		return names
	}

	newer := load(t, "nova-scheduler-operator")
	i := slices.IndexFunc(newer.Templates, func(file *common.File) bool { return file.Name == "templates/crds/"+schedulerCRD+".yaml" })
	newer.Templates[i].Data = bytes.Replace(newer.Templates[i].Data, []byte("    - nsched\n"), []byte("    - nsched\n    - newer\n"), 1)
	force := func(upgrade *action.Upgrade) { upgrade.ForceConflicts = true } // other tests apply the same definitions
	if err := helmUpgrade(t, own, "scheduler", newer, nil, force); err != nil {
		t.Fatal(err)
	}
	if names := shortNames(); !slices.Equal(names, []string{"nsched", "newer"}) {
		t.Errorf("the upgrade leaves the short names %v", names)
	}
	if err := helmUpgrade(t, own, "scheduler", load(t, "nova-scheduler-operator"), nil, force); err != nil {
		t.Fatal(err)
	}
	if names := shortNames(); !slices.Equal(names, []string{"nsched"}) {
		t.Errorf("the next upgrade leaves the short names %v", names)
	}
}

func TestHelmRemovesKeysOfSecrets(t *testing.T) {
	ctx := t.Context()
	c := connect(t)
	install(ctx, t, c)
	own := newNamespace(ctx, t, c)
	given := examples(t, "nova-scheduler")["scheduler-values.yaml"]
	given["secrets"] = map[string]any{"connection": map[string]any{"stays": "a", "changes": "b", "goes": "c"}}
	helmInstall(t, own, "scheduler", "nova-scheduler", given)
	defer helmUninstall(t, own, "scheduler")

	given["secrets"] = map[string]any{"connection": map[string]any{"stays": "a", "changes": "d"}}
	err := helmUpgrade(t, own, "scheduler", load(t, "nova-scheduler"), given, func(upgrade *action.Upgrade) {
		upgrade.ResetThenReuseValues, upgrade.ResetValues = false, true
	})
	if err != nil {
		t.Fatal(err)
	}
	got := decoded(t, get(ctx, t, c, "v1", "Secret", own, "connection"))
	if want := map[string]any{"stays": "a", "changes": "d"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the Secret has %v, want %v", got, want)
	}
}
