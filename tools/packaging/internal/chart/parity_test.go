package chart_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/source"
)

// helmLabels and keep are what the charts add to every object and to definitions.
var helmLabels = []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"}

const keep = "helm.sh/resource-policy"

// normal removes the differences that the READMEs of the charts list.
func normal(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	labels := object.GetLabels()
	for _, label := range helmLabels {
		delete(labels, label)
	}
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	delete(annotations, keep)
	object.SetAnnotations(annotations)
	for _, field := range []string{"labels", "annotations"} {
		if empty, found, _ := unstructured.NestedStringMap(object.Object, "metadata", field); found && len(empty) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
	}
	if slices.Contains([]string{"Deployment", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"}, object.GetKind()) && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	if subjects, found, _ := unstructured.NestedSlice(object.Object, "subjects"); found {
		for _, subject := range subjects {
			subject.(map[string]any)["namespace"] = namespace
		}
		_ = unstructured.SetNestedSlice(object.Object, subjects, "subjects")
	}
	if object.GetKind() == "Deployment" {
		normalContainer(object)
	}
	return object
}

// normalContainer removes the tag and registry of the image and the images of operands, and
// sorts the environment.
func normalContainer(deployment *unstructured.Unstructured) {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	container := containers[0].(map[string]any)
	image := container["image"].(string)
	image = image[strings.LastIndex(image, "/")+1:]
	container["image"], _, _ = strings.Cut(image, ":")
	variables := slices.DeleteFunc(container["env"].([]any), func(variable any) bool {
		return strings.HasPrefix(variable.(map[string]any)["name"].(string), "RELATED_IMAGE_")
	})
	slices.SortFunc(variables, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
	container["env"] = variables
	_ = unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}

// same compares rendered objects with those of a kustomization.
func same(t *testing.T, rendered map[string]*unstructured.Unstructured, wanted []*unstructured.Unstructured) {
	t.Helper()
	left := map[string]*unstructured.Unstructured{}
	for _, object := range rendered {
		if object.GetKind() == "Job" { // TestRemovalIsCheckedFirst
			continue
		}
		object = normal(object)
		left[id(object)] = object
	}
	for _, object := range wanted {
		object = normal(object)
		found := left[id(object)]
		delete(left, id(object))
		switch {
		case found == nil:
			t.Errorf("the chart lacks %s", id(object))
		case !reflect.DeepEqual(found.Object, object.Object):
			t.Errorf("%s differs:\nchart:\n%s\nkustomization:\n%s", id(object), text(found), text(object))
		}
	}
	for extra := range left {
		t.Errorf("only the chart has %s", extra)
	}
}

func text(object *unstructured.Unstructured) string {
	content, _ := yaml.Marshal(object.Object)
	return string(content[:min(len(content), 4000)])
}

// kustomization returns the objects of a folder in config that charts have. The policy of
// RoleBindings becomes one policy for each operator.
func kustomization(t *testing.T, folder string) (objects []*unstructured.Unstructured) {
	t.Helper()
	all, err := source.Render(project(t).Path("config", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range all {
		switch {
		case object.GetKind() == "Namespace":
		case object.GetName() == "asterism-rolebindings":
			for _, operator := range project(t).Operators {
				if !operator.ClusterWide {
					objects = append(objects, policyOf(t, object, operator))
				}
			}
		default:
			objects = append(objects, object)
		}
	}
	return objects
}

// policyOf is the policy of RoleBindings, or its binding, for one operator.
func policyOf(t *testing.T, shared *unstructured.Unstructured, operator *source.Operator) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.Marshal(shared.Object)
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("asterism-[a-z0-9-]+-operator", operator.Account, "asterism-rolebindings", "asterism-"+operator.Name+"-rolebindings").Replace(string(content))
	if shared.GetKind() == "ValidatingAdmissionPolicy" && !strings.Contains(replaced, "'^system:serviceaccount:[^:]+:"+operator.Account+"$'") {
		t.Errorf("the policy of RoleBindings does not name %s:\n%s", operator.Account, replaced)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(replaced), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestOperatorChartEqualsItsKustomization(t *testing.T) {
	var shared []*unstructured.Unstructured
	all, err := source.Render(project(t).Path("config", "control-plane"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range all {
		if object.GetName() == "asterism-rolebindings" {
			shared = append(shared, object)
		}
	}
	for _, operator := range project(t).Operators {
		t.Run(operator.Name, func(t *testing.T) {
			rendered, notes := render(t, operator.Package(), namespace, map[string]any{})
			wanted := slices.Clone(operator.Objects)
			if !operator.ClusterWide {
				for _, object := range shared {
					wanted = append(wanted, policyOf(t, object, operator))
				}
			}
			same(t, rendered, wanted)
			for _, crd := range operator.CRDs {
				if !strings.Contains(notes, crd.Name) {
					t.Errorf("the notes do not name %s:\n%s", crd.Name, notes)
				}
				if rendered["CustomResourceDefinition /"+crd.Name].GetAnnotations()[keep] != "keep" {
					t.Errorf("Helm would delete %s", crd.Name)
				}
			}
		})
	}
}

// TestRemovalIsCheckedFirst: the check has the account, image and environment of the operator.
func TestRemovalIsCheckedFirst(t *testing.T) {
	for _, operator := range project(t).Operators {
		rendered, _ := render(t, operator.Package(), namespace, map[string]any{})
		job := rendered["Job "+namespace+"/"+operator.Account+"-removal"]
		deployment := rendered["Deployment "+namespace+"/"+operator.Account]
		if job == nil || deployment == nil || job.GetAnnotations()["helm.sh/hook"] != "pre-delete" {
			t.Fatalf("%s: no check of the removal among %v", operator.Name, slices.Sorted(maps.Keys(rendered)))
		}
		checking, running := podOf(t, job), podOf(t, deployment)
		if args := checking.Containers[0].Args; !slices.Equal(args, []string{"--check-removal"}) {
			t.Errorf("%s: arguments %q", operator.Name, args)
		}
		checking.RestartPolicy, checking.Containers[0].Args = "", nil
		running.Containers[0].LivenessProbe, running.Containers[0].ReadinessProbe, running.Containers[0].Ports = nil, nil, nil
		if !reflect.DeepEqual(checking, running) {
			t.Errorf("%s: the pod of the check differs from the operator's:\n%s\n%s", operator.Name, text(job), text(deployment))
		}
	}
}

func podOf(t *testing.T, object *unstructured.Unstructured) (pod corev1.PodSpec) {
	t.Helper()
	fields, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &pod)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestUmbrellaEqualsControlPlane(t *testing.T) {
	rendered, notes := render(t, "asterism", namespace, map[string]any{})
	same(t, rendered, kustomization(t, "control-plane"))
	if !strings.Contains(notes, "novas.nova.asterism.dev") || strings.Contains(notes, "sharedvolumes.storage.asterism.dev") {
		t.Errorf("the notes do not list the installed kinds:\n%s", notes)
	}
}

func TestUmbrellaWithEveryNamespaceEqualsAllNamespaces(t *testing.T) {
	rendered, notes := render(t, "asterism", namespace, values(t, `global: {asterism: {watchNamespaces: "*"}}`))
	same(t, rendered, kustomization(t, "all-namespaces"))
	if !strings.Contains(notes, "every namespace") {
		t.Error(notes)
	}
}

func TestUmbrellaHandsNamespacesOver(t *testing.T) {
	rendered, notes := render(t, "asterism", namespace, values(t, `global: {asterism: {watchNamespaces: [openstack, "123"]}}`))
	wanted := kustomization(t, "control-plane")
	for _, handed := range []string{"openstack", "123"} {
		for _, object := range kustomization(t, "namespace") {
			object = object.DeepCopy()
			object.SetNamespace(handed)
			wanted = append(wanted, object)
		}
	}
	same(t, rendered, wanted)
	for name, object := range rendered {
		if object.GetLabels()["app.kubernetes.io/part-of"] != "asterism" {
			t.Errorf("%s lacks the label of the project", name)
		}
	}
	if !strings.Contains(notes, "openstack 123") {
		t.Error(notes)
	}
}

// The operator of shared volumes is off by default: it belongs in a namespace of its own.
func TestUmbrellaCanHaveSharedVolumes(t *testing.T) {
	rendered, _ := render(t, "asterism", namespace, values(t, "operators: {shared-volume: true, meta: false}"))
	if rendered["Deployment asterism-system/asterism-shared-volume-operator"] == nil || rendered["Deployment asterism-system/asterism-meta-operator"] != nil {
		t.Error("operators does not select the operators")
	}
}
