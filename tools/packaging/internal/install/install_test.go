package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/source"
)

const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"

// files are the manifests with images of a registry, of which one is known by its digest.
func files(t *testing.T) (*source.Project, map[string][]*unstructured.Unstructured) {
	t.Helper()
	project, err := source.Read("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	images := source.Images{Registry: "a.example/x", Tag: "v9", Digests: map[string]string{"a.example/x/nova-operator:v9": digest}}
	made, err := Files(project, images)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]*unstructured.Unstructured{}
	for name, content := range made {
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[name] = append(all[name], object)
		}
	}
	return project, all
}

// TestManifestsAreThoseOfConfig: only the images of the operators differ.
func TestManifestsAreThoseOfConfig(t *testing.T) {
	project, made := files(t)
	for name, folder := range Manifests {
		want, err := source.Render(project.Path(folder))
		if err != nil {
			t.Fatal(err)
		}
		if len(made[name]) != len(want) || len(want) == 0 {
			t.Fatalf("%s has %d objects, %s has %d", name, len(made[name]), folder, len(want))
		}
		for i, object := range want {
			if difference := cmp.Diff(encode(t, object), encode(t, made[name][i])); difference != "" {
				t.Errorf("%s: %s %s: %s", name, object.GetKind(), object.GetName(), difference)
			}
		}
	}
}

// encode returns an object as YAML without what the manifests replace in a Deployment.
func encode(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	var compared any = object
	if object.GetKind() == "Deployment" {
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			t.Fatal(err)
		}
		container := source.Container(deployment)
		container.Image = ""
		container.Env = slices.DeleteFunc(container.Env, func(variable corev1.EnvVar) bool { return strings.HasPrefix(variable.Name, "RELATED_IMAGE_") })
		compared = deployment
	}
	content, err := yaml.Marshal(compared)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestImagesAreThoseOfTheVersion(t *testing.T) {
	project, made := files(t)
	got := map[string]string{}
	for _, object := range slices.Concat(made["install.yaml"], made["shared-volume.yaml"]) {
		if containers, found, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers"); found {
			got[object.GetName()] = containers[0].(map[string]any)["image"].(string)
		}
	}
	want := map[string]string{}
	for _, operator := range project.Operators {
		want[operator.Deployment.Name] = "a.example/x/" + operator.Package() + ":v9"
	}
	want[project.Operator("nova").Deployment.Name] = "a.example/x/nova-operator@" + digest
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

// TestPoliciesAreComplete: an installation with OLM applies this file, and run-on-host.yaml only for
// computes that need it.
func TestPoliciesAreComplete(t *testing.T) {
	_, made := files(t)
	var want []*unstructured.Unstructured
	for _, name := range []string{"install.yaml", "namespace.yaml", "shared-volume.yaml"} {
		for _, object := range made[name] {
			if kind := object.GetKind(); kind == "NetworkPolicy" || strings.HasPrefix(kind, "ValidatingAdmissionPolicy") {
				want = append(want, object)
			}
		}
	}
	if difference := cmp.Diff(want, made["policies.yaml"]); difference != "" || len(want) == 0 {
		t.Errorf("%d policies: %s", len(want), difference)
	}
}
