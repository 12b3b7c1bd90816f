package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"asterism.dev/cli/tree"
	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
)

func TestCheckReadsTheStandardInput(t *testing.T) {
	var out, errOut bytes.Buffer
	env := newTestEnvironment(t, "testdata/manifests", &out, &errOut)
	env.In = strings.NewReader("apiVersion: nova.asterism.dev/v1alpha1\nkind: NovaCell\nmetadata: {name: a}\nspec:\n  apiAccess: Enabled\n")
	const want = "-:5: NovaCell/a: spec.apiAccess is now:\n  apiDatabaseAccess: Enabled\n"
	if code := run(t.Context(), []string{"check", "-"}, env); code != codeNotReady || out.String() != want {
		t.Errorf("exit code %d, %s%s", code, &out, &errOut)
	}
}

// TestMarks: a person sees the marks of the states.
func TestMarks(t *testing.T) {
	var out, errOut bytes.Buffer
	for _, world := range []string{"testdata/uninstalled", "testdata/unchecked"} {
		env := newTestEnvironment(t, world, &out, &errOut)
		env.style = func() tree.Style { return tree.Style{Terminal: true} }
		run(t.Context(), []string{"check"}, env)
	}
	for _, want := range []string{"✓ ok", "✗ failed", "… not checked"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s%s", want, &out, &errOut)
		}
	}
}

func TestPodSecurity(t *testing.T) {
	const level, runOnHost = "pod-security.kubernetes.io/enforce", "asterism.dev/run-on-host"
	for name, c := range map[string]struct {
		labels     map[string]string
		privileged bool
		want       string
	}{
		"no label":                        {nil, false, "no label: the default of the cluster applies"},
		"every level":                     {map[string]string{level: "restricted"}, false, "restricted admits the pods"},
		"no level":                        {map[string]string{level: "strict"}, false, `strict is no level: "kubectl label namespace cloud pod-security.kubernetes.io/enforce=restricted --overwrite"`},
		"Libvirt without a label":         {nil, true, "computes with driver Libvirt need the label pod-security.kubernetes.io/enforce=privileged of namespace cloud: docs/guides/libvirt.md"},
		"Libvirt, baseline":               {map[string]string{level: "baseline", runOnHost: "restricted"}, true, "baseline refuses the pods of computes with driver Libvirt: docs/guides/libvirt.md"},
		"Libvirt, no label for policies":  {map[string]string{level: "privileged"}, true, "the policies of config/run-on-host refuse the pods of computes with driver Libvirt without the label asterism.dev/run-on-host of namespace cloud: docs/guides/libvirt.md"},
		"Libvirt, label for the policies": {map[string]string{level: "privileged", runOnHost: "restricted"}, true, "privileged admits the pods"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cloud", Labels: c.labels}}
			got, err := judgePodSecurity(namespace, c.privileged)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestMinimumIsThatOfThePackages: Helm and OLM refuse older versions.
func TestMinimumIsThatOfThePackages(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config/packaging.yaml"))
	if err != nil || !strings.Contains(string(content), "minKubeVersion: "+minKubernetes+"\n") {
		t.Errorf("config/packaging.yaml does not have version %s: %v", minKubernetes, err)
	}
}

// TestDifferences: a definition of an older release lacks a field, and one of a newer release has
// a field that this program does not know.
func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		change func(spec map[string]property)
		want   string
	}{
		"older": {func(spec map[string]property) { delete(spec["nova"].Properties["cells"].Items.Properties, "uuid") }, "[ControlPlane.spec.nova.cells.uuid]"},
		"newer": {func(spec map[string]property) { spec["nova"].Properties["placement"] = property{} }, "[ControlPlane.spec.nova.placement]"},
		"same":  {func(map[string]property) {}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := crd{}
			for _, o := range documents(t, filepath.Join(repository, "operators/meta/config/crd/asterism.dev_controlplanes.yaml")) {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
					t.Fatal(err)
				}
			}
			root := d.Spec.Versions[0].Schema.Root
			test.change(root.Properties["spec"].Properties)
			if got := fmt.Sprint(differences(root, reflect.TypeFor[metav1alpha1.ControlPlane](), "ControlPlane")); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestWatchesAll: each way of installation says in another way that an operator watches all
// namespaces.
func TestWatchesAll(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		want     bool
	}{
		"handed over":            {"spec: {containers: [{name: operator, env: [{name: POD_NAME}]}]}", false},
		"all namespaces":         {"spec: {containers: [{name: operator, env: [{name: WATCH_NAMESPACE}]}]}", true},
		"one namespace":          {"spec: {containers: [{name: operator, env: [{name: WATCH_NAMESPACE, value: a}]}]}", false},
		"OLM, all namespaces":    {"metadata: {annotations: {olm.targetNamespaces: ''}}\n" + ofOLM, true},
		"OLM, one namespace":     {"metadata: {annotations: {olm.targetNamespaces: a}}\n" + ofOLM, false},
		"OLM, no annotation yet": {ofOLM, false},
	} {
		operator := appsv1.Deployment{}
		if err := yaml.Unmarshal([]byte(test.template), &operator.Spec.Template); err != nil {
			t.Fatal(err)
		}
		if got := watchesAll(operator); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestHandedOver: an operator looks for a RoleBinding of its own name, unless a list names its
// namespaces.
func TestHandedOver(t *testing.T) {
	const account = "asterism-nova-operator"
	byName := rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: account}},
	}
	changed := func(change func(*rbacv1.RoleBinding)) rbacv1.RoleBinding {
		b := byName.DeepCopy()
		change(b)
		return *b
	}
	const plain = "spec: {containers: [{name: operator}]}"
	const listed = "spec: {containers: [{name: operator, env: [{name: WATCH_NAMESPACE, value: 'a,cloud'}]}]}"
	for name, test := range map[string]struct {
		template string // of the pods; empty for an operator that cannot be read
		binding  rbacv1.RoleBinding
		want     bool
	}{
		"by name":                    {plain, byName, true},
		"another name":               {plain, changed(func(b *rbacv1.RoleBinding) { b.Name = "mine" }), false},
		"another role":               {plain, changed(func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" }), false},
		"another namespace":          {plain, changed(func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = "asterism-system" }), false},
		"list, any name":             {listed, changed(func(b *rbacv1.RoleBinding) { b.Name = "mine" }), true},
		"list, another account":      {listed, changed(func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "default" }), false},
		"list without the namespace": {strings.Replace(listed, "cloud", "b", 1), byName, false},
		"OLM":                        {"metadata: {annotations: {olm.targetNamespaces: 'cloud'}}\n" + ofOLM, changed(func(b *rbacv1.RoleBinding) { b.Name = "nova-operator.v1-abc" }), true},
		"not readable":               {"", changed(func(b *rbacv1.RoleBinding) { b.Name = "mine" }), true},
	} {
		operator := appsv1.Deployment{}
		if test.template != "" {
			operator.Name, operator.Namespace = account, "ops"
		}
		if err := yaml.Unmarshal([]byte(test.template), &operator.Spec.Template); err != nil {
			t.Fatal(err)
		}
		if got := handsOver([]rbacv1.RoleBinding{test.binding}, operator, account, "cloud"); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestScaledAway: Kubernetes says that a Deployment without replicas is available.
func TestScaledAway(t *testing.T) {
	operator := appsv1.Deployment{}
	operator.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	if isAvailable(operator) {
		t.Error("an operator without a pod counts as available")
	}
	if operator.Status.AvailableReplicas = 1; !isAvailable(operator) {
		t.Error("an operator that runs does not count as available")
	}
}

const ofOLM = `spec: {containers: [{name: operator, env: [{name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['olm.targetNamespaces']"}}}]}]}`
