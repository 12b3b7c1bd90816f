package command

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/install"
)

const repository = "../../.."

// installation is a real API server with the real kubectl and helm.
type installation struct {
	client.Client
	namespace string // of ControlPlanes
	release   string // folder of a release
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	objects, err := client.New(enginetest.Config(t), client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{Client: objects, namespace: enginetest.Namespace(t), release: newRelease(t)}
	i.clear(t)
	t.Cleanup(func() { i.clear(t) })
	return i
}

// newRelease has the packages of the repository with images by tag, and the other files of a
// release.
func newRelease(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	packaging := exec.CommandContext(t.Context(), "go", "run", "./packaging", "-output", folder)
	packaging.Dir, packaging.Env = filepath.Join(repository, "tools"), append(os.Environ(), "GOWORK=off")
	if message, err := packaging.CombinedOutput(); err != nil {
		t.Fatalf("tools/packaging: %v\n%s", err, message)
	}
	for _, file := range []string{"images.yaml", "catalogsource.yaml"} {
		content, err := os.ReadFile(filepath.Join("testdata/release", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// clear removes the namespaces of the operators, which every installation uses.
func (i *installation) clear(t *testing.T) {
	t.Helper()
	for _, name := range operatorNamespaces {
		namespace := &corev1.Namespace{}
		namespace.Name = name
		if err := i.Delete(context.Background(), namespace); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		i.await(t, "the end of namespace "+name, func() bool {
			return client.IgnoreNotFound(i.Get(context.Background(), types.NamespacedName{Name: name}, namespace)) == nil && !i.has(t, "v1", "Namespace", "", name)
		})
	}
}

func (i *installation) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (i *installation) has(t *testing.T, apiVersion, kind, namespace, name string) bool {
	t.Helper()
	o := object(apiVersion, kind, namespace, name)
	err := i.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// run runs a command as a person does. The kubelet and OLM of the test run meanwhile.
func (i *installation) run(t *testing.T, arguments ...string) (code int, out string) {
	t.Helper()
	text := &screen{}
	code = i.runOn(t, text, arguments...)
	return code, text.String()
}

// runOn is run with an output that the test reads meanwhile.
func (i *installation) runOn(t *testing.T, text *screen, arguments ...string) (code int) {
	t.Helper()
	s := &server{namespace: i.namespace}
	env := s.environment(text, text)
	env.run, env.find = install.Program(text), install.Find
	return run(t.Context(), append(arguments, "--from", i.release, "--yes"), env)
}

// programs puts kubectl of the API server on PATH. The Makefile puts helm of tools/helm there.
func programs(t *testing.T) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-c", `. "$0" && echo -n "$PATH"`, filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "env"))
	path, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+string(path))
	if _, err := exec.LookPath("helm"); err != nil {
		t.Fatalf("%v; in the repository's root, type \"make test-cli\"", err)
	}
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	t.Setenv("HELM_DATA_HOME", t.TempDir())
}

// runPods reports the pods of the operators as ready, and those of Jobs as done, as a kubelet
// does: before Helm deletes an operator, a Job looks for objects.
func (i *installation) runPods(t *testing.T) (stop func()) {
	t.Helper()
	return repeat(t, func(ctx context.Context) {
		var pods corev1.PodList
		if i.List(ctx, &pods, client.InNamespace("asterism-system")) != nil {
			return
		}
		for _, pod := range pods.Items {
			before := client.MergeFrom(pod.DeepCopy())
			if pod.Status.Phase = corev1.PodRunning; pod.Labels["batch.kubernetes.io/job-name"] != "" {
				pod.Status.Phase = corev1.PodSucceeded
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = i.Status().Patch(ctx, &pod, before) // a pod that is gone is not listed again
		}
	})
}

// repeat acts as another program, until stop is called.
func repeat(t *testing.T, act func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			act(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

const (
	definition     = "controlplanes.asterism.dev"
	metaDeployment = "asterism-meta-operator"
)

// TestInstallByPrograms installs and removes the operators with the real kubectl and the real
// helm.
func TestInstallByPrograms(t *testing.T) {
	i := newInstallation(t)
	programs(t)
	for _, way := range []string{install.Kubectl, install.Helm} {
		t.Run(way, func(t *testing.T) { i.testProgram(t, way) })
	}
	t.Run("kustomization", func(t *testing.T) {
		namespace := &corev1.Namespace{} // the remains of a removal that was not complete
		namespace.Name = operatorNamespaces[0]
		if err := i.Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		checkout := *i
		checkout.release = repository + "/config/control-plane"
		code, out := checkout.run(t, "uninstall", "--with", install.Kubectl, "--dry-run")
		if code != 0 || !strings.Contains(out, " deployment.apps/"+metaDeployment+" ") || strings.Contains(out, "CustomResourceDefinition") {
			t.Errorf("uninstall of a kustomization: %d\n%s", code, out)
		}
	})
}

func (i *installation) testProgram(t *testing.T, way string) {
	with := []string{"install", "--with", way, "--namespaces", i.namespace}
	if way == install.Helm {
		with = append(with, "--take-ownership") // other suites have installed the kinds
	}
	code, out := i.run(t, append(with, "--timeout", "30s")...) // Kubernetes creates the pods meanwhile
	if code != codeError || !strings.Contains(lastLine(out), "not complete after 30s: Pod/asterism-") {
		t.Fatalf("without a kubelet: %d\n%s", code, out)
	}
	defer i.runPods(t)()
	if way == install.Kubectl {
		if code, out := i.run(t, with...); code != 0 {
			t.Fatalf("install: %d\n%s", code, out)
		}
	}
	if !i.has(t, "rbac.authorization.k8s.io/v1", "RoleBinding", i.namespace, metaDeployment) {
		t.Errorf("the namespace is not handed over:\n%s", out)
	}
	if code, out := i.run(t, "upgrade", "--with", way); code != 0 {
		t.Fatalf("upgrade: %d\n%s", code, out)
	}
	i.testOtherWays(t, way)
	i.testUninstall(t, way)
}

// testOtherWays expects that what was installed one way is not removed another way.
func (i *installation) testOtherWays(t *testing.T, way string) {
	t.Helper()
	for _, other := range install.Ways {
		if other == way {
			continue
		}
		if code, out := i.run(t, "uninstall", "--with", other); code != codeError || !strings.HasSuffix(lastLine(out), "use --with "+way) {
			t.Errorf("uninstall with %s: %d\n%s", other, code, out)
		}
	}
}

// testUninstall removes the operators, first with a ControlPlane that needs them.
func (i *installation) testUninstall(t *testing.T, way string) {
	t.Helper()
	plane := object("asterism.dev/v1alpha1", "ControlPlane", i.namespace, "")
	i.createSample(t, plane)
	if code, out := i.run(t, "uninstall", "--with", way); code != codeError || !strings.Contains(out, "kubectl delete controlplane "+plane.GetName()+" -n "+i.namespace) {
		t.Fatalf("uninstall with a ControlPlane: %d\n%s", code, out)
	}
	if err := i.Delete(context.Background(), plane); err != nil {
		t.Fatal(err)
	}
	if code, out := i.run(t, "uninstall", "--with", way); code != 0 {
		t.Fatalf("uninstall: %d\n%s", code, out)
	}
	if code, out := i.run(t, "uninstall", "--with", way); code != 0 || !strings.Contains(out, "nothing is installed") {
		t.Errorf("uninstall after uninstall: %d\n%s", code, out)
	}
	if i.has(t, "apps/v1", "Deployment", "asterism-system", metaDeployment) || !i.has(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition) {
		t.Error("uninstall must delete the operators, and keep the kinds")
	}
	i.clear(t)
}

// createSample creates the sample of a ControlPlane, without the finalizer that its operator
// adds.
func (i *installation) createSample(t *testing.T, plane *unstructured.Unstructured) {
	t.Helper()
	for _, document := range documents(t, repository+"/operators/meta/config/samples/controlplane.yaml") {
		if document.GetKind() == plane.GetKind() {
			document.SetNamespace(i.namespace)
			if err := i.Create(context.Background(), document); err != nil {
				t.Fatal(err)
			}
			plane.SetName(document.GetName())
			return
		}
	}
	t.Fatal("the sample has no ControlPlane")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// TestInstallByOLM installs with the real kinds of OLM. The test acts as OLM: test/packages has
// the real one.
func TestInstallByOLM(t *testing.T) {
	enginetest.InstallCRDs(t, filepath.Join(moduleOf(t, "operator-lifecycle-manager"), "deploy", "chart", "crds"))
	folders, err := filepath.Glob(repository + "/operators/*/config/crd")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.InstallCRDs(t, folders...)
	i := newInstallation(t)
	programs(t)
	catalogs := enginetest.Namespace(t)
	with := []string{"--with", "olm", "--catalog-namespace", catalogs}
	i.mustWait(t, with, "CatalogSource "+catalogs+"/asterism is not read yet")
	i.report(t, object(olmV1alpha1, "CatalogSource", catalogs, "asterism"), map[string]any{"connectionState": map[string]any{"lastObservedState": "READY", "lastConnect": "2026-01-31T10:00:00Z"}})
	i.mustWait(t, with, "has installed nothing, not meta-operator.v0.1.0: OLM has not answered yet")
	own := object(olmV1alpha1, "Subscription", "asterism-system", "asterism")
	i.report(t, own, map[string]any{"lastUpdated": "2026-01-31T10:00:00Z", "conditions": []any{
		map[string]any{"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable", "message": "no nova-scheduler-operator"},
	}})
	i.mustWait(t, with, "Subscription asterism-system/asterism ResolutionFailed ConstraintsNotSatisfiable: no nova-scheduler-operator")
	text := &screen{}
	stop := repeat(t, func(ctx context.Context) { i.actAsOLM(ctx, own, text) })
	code := i.runOn(t, text, append([]string{"install", "--namespaces", i.namespace}, with...)...)
	stop()
	out := text.String()
	if code != 0 || !strings.Contains(out, "0 of 1 operators run; ClusterServiceVersion asterism-system/meta-operator.v0.1.0 Pending RequirementsNotMet: one or more requirements couldn't be found") {
		t.Fatalf("install: %d\n%s", code, out)
	}
	i.testOverride(t)
	i.testRemovalByOLM(t, catalogs, with)
}

// mustWait installs by OLM, which must fail because of what it waits for. The time is longer if
// the machine is too slow to find that out.
func (i *installation) mustWait(t *testing.T, with []string, want string) {
	t.Helper()
	for _, timeout := range []string{"3s", "20s", "2m"} {
		code, out := i.run(t, append([]string{"install", "--namespaces", i.namespace, "--timeout", timeout}, with...)...)
		switch {
		case code == codeError && strings.Contains(lastLine(out), want):
			return
		case timeout == "2m":
			t.Fatalf("%d, want %s\n%s", code, want, out)
		}
	}
}

// testOverride runs the command of the page by which OLM upgrades in spite of a Job.
func (i *installation) testOverride(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(repository + "/docs/guides/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	const beginning = "kubectl patch operatorcondition "
	_, after, found := strings.Cut(string(page), "\n"+beginning)
	command, _, ends := strings.Cut(after, "\n```")
	if !found || !ends {
		t.Fatalf("the page has no command %s", beginning)
	}
	condition := object("operators.coreos.com/v2", "OperatorCondition", "asterism-system", strings.Fields(command)[0])
	if err := i.Create(t.Context(), condition); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", beginning+command).CombinedOutput(); err != nil {
		t.Fatalf("%s%s: %v\n%s", beginning, command, err, out)
	}
	if err := i.Get(t.Context(), client.ObjectKeyFromObject(condition), condition); err != nil {
		t.Fatal(err)
	}
	overrides, _, _ := unstructured.NestedSlice(condition.Object, "spec", "overrides")
	if len(overrides) != 1 || overrides[0].(map[string]any)["type"] != "Upgradeable" {
		t.Errorf("overrides %v", overrides)
	}
	if err := i.Delete(t.Context(), condition); err != nil {
		t.Fatal(err)
	}
}

func (i *installation) testRemovalByOLM(t *testing.T, catalogs string, with []string) {
	t.Helper()
	installs := object(olmV1alpha1, "InstallPlan", "asterism-system", "install-late")
	installs.Object["spec"] = map[string]any{"approval": "Automatic", "approved": true, "clusterServiceVersionNames": []any{"meta-operator.v0.1.0"}}
	if err := i.Create(t.Context(), installs); err != nil {
		t.Fatal(err)
	}
	i.report(t, installs, map[string]any{"phase": "Installing", "catalogSources": []any{}})
	role := i.createRole(t)
	text, repeated := &screen{}, false
	version := func() *unstructured.Unstructured {
		return object(olmV1alpha1, "ClusterServiceVersion", "asterism-system", "meta-operator.v0.1.0")
	}
	before := version()
	if err := i.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	stop := repeat(t, func(ctx context.Context) {
		if strings.Contains(text.String(), "install-late") {
			_ = i.patchStatus(ctx, installs, map[string]any{"phase": "Complete", "catalogSources": []any{}}) // otherwise uninstall fails
		}
		if !repeated && apierrors.IsNotFound(i.Get(ctx, client.ObjectKeyFromObject(before), version())) {
			again := version()
			again.Object["spec"] = before.Object["spec"]
			repeated = i.Create(ctx, again) == nil // OLM finishes the InstallPlan
		}
	})
	code := i.runOn(t, text, append([]string{"uninstall"}, with...)...)
	stop()
	out := text.String()
	if code != 0 || !repeated || !strings.Contains(out, "install-late") || !strings.Contains(out, "Installing") || !strings.Contains(out, "OLM created ClusterServiceVersion") {
		t.Fatalf("uninstall: %d\n%s", code, out)
	}
	for _, gone := range []*unstructured.Unstructured{
		object(olmV1alpha1, "Subscription", "asterism-system", "asterism"),
		object(olmV1alpha1, "ClusterServiceVersion", "asterism-system", "meta-operator.v0.1.0"),
		object(olmV1alpha1, "CatalogSource", catalogs, "asterism"),
		object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "asterism-rolebindings"),
		role,
	} {
		if i.has(t, gone.GetAPIVersion(), gone.GetKind(), gone.GetNamespace(), gone.GetName()) {
			t.Errorf("%s %s exists after uninstall", gone.GetKind(), gone.GetName())
		}
	}
	if !i.has(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", definition) {
		t.Error("uninstall must keep the kinds")
	}
}

// createRole creates a ClusterRole of a bundle as OLM does: nothing but a label shows its origin.
func (i *installation) createRole(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	role := documents(t, repository+"/operators/meta/bundle/manifests/asterism-meta-controlplane-editor_clusterrole.yaml")[0]
	labels := role.GetLabels()
	labels["olm.managed"] = "true"
	role.SetLabels(labels)
	if err := i.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return role
}

const olmV1alpha1 = "operators.coreos.com/v1alpha1"

// actAsOLM does the next thing that OLM does for a Subscription: it succeeds when the command has
// shown that it has not yet, or after some minutes.
func (i *installation) actAsOLM(ctx context.Context, own *unstructured.Unstructured, text *screen) {
	version := object(olmV1alpha1, "ClusterServiceVersion", "asterism-system", "meta-operator.v0.1.0")
	if i.Get(ctx, client.ObjectKeyFromObject(version), version) != nil {
		version.Object["spec"] = map[string]any{"displayName": "Asterism", "install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{}}}}
		_ = i.Create(ctx, version)
		_ = i.patchStatus(ctx, version, map[string]any{"phase": "Pending", "reason": "RequirementsNotMet", "message": "one or more requirements couldn't be found"})
		_ = i.patchStatus(ctx, own, map[string]any{
			"lastUpdated": "2026-01-31T10:00:00Z", "state": "UpgradePending", "currentCSV": version.GetName(), "conditions": []any{},
		})
		return
	}
	if strings.Contains(text.String(), "RequirementsNotMet") || version.GetCreationTimestamp().Add(5*time.Minute).Before(time.Now()) {
		_ = i.patchStatus(ctx, version, map[string]any{"phase": "Succeeded", "reason": "InstallSucceeded", "message": ""})
		_ = i.patchStatus(ctx, own, map[string]any{"lastUpdated": "2026-01-31T10:00:00Z", "state": "AtLatestKnown", "installedCSV": version.GetName()})
	}
}

func (i *installation) report(t *testing.T, o *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	if err := i.patchStatus(t.Context(), o, status); err != nil {
		t.Fatal(err)
	}
}

func (i *installation) patchStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	change := object(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
	before := client.MergeFrom(change.DeepCopy())
	change.Object["status"] = status
	return i.Status().Patch(ctx, change, before)
}

// moduleOf returns the folder of a module of tools/olm, which is downloaded if necessary.
func moduleOf(t *testing.T, name string) string {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/operator-framework/"+name)
	download.Dir = repository + "/tools/olm"
	download.Env = append(os.Environ(), "GOWORK=off")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}
