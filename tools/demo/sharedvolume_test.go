package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/checkout"
)

// inCopy returns a demo in a temporary copy of the repository's files that it reads.
func inCopy(t *testing.T) *demo {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{root: t.TempDir(), release: defaultRelease, driver: "0123456789ab", tags: map[string]string{"meta": "ba9876543210"}}
	for _, folder := range []string{"config", "examples", "operators"} {
		if err := os.CopyFS(filepath.Join(d.root, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.makeWorkFolder(); err != nil {
		t.Fatal(err)
	}
	return d
}

func overlay(t *testing.T, d *demo) (resources string, patches []types.Patch) {
	t.Helper()
	if err := d.writeOverlay(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(d.work("operators", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var written types.Kustomization
	if err := yaml.Unmarshal(content, &written); err != nil {
		t.Fatal(err)
	}
	manifests, err := os.ReadFile(d.work("manifests", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(manifests), written.Patches
}

func TestDriverHasImagesOfTheDemo(t *testing.T) {
	d := inCopy(t)
	_, patches := overlay(t, d)
	if len(patches) != 1 || patches[0].Target.Name != "asterism-shared-volume-operator" {
		t.Fatalf("patches %+v", patches)
	}
	var changed appsv1.Deployment
	if err := yaml.Unmarshal([]byte(patches[0].Patch), &changed); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"RELATED_IMAGE_EFS_CSI_DRIVER":        "asterism.dev/demo/aws-efs-csi-driver:0123456789ab",
		"RELATED_IMAGE_NODE_DRIVER_REGISTRAR": "asterism.dev/demo/csi-node-driver-registrar:0123456789ab",
		"RELATED_IMAGE_LIVENESS_PROBE":        "asterism.dev/demo/livenessprobe:0123456789ab",
	}
	for _, variable := range changed.Spec.Template.Spec.Containers[0].Env {
		if want[variable.Name] != variable.Value {
			t.Errorf("%s is %s", variable.Name, variable.Value)
		}
		delete(want, variable.Name)
	}
	if len(want) > 0 {
		t.Errorf("images that no patch sets: %v", want)
	}
	if names, err := d.operators(); err != nil || !slices.Contains(names, sharedVolume) {
		t.Errorf("operators %v, %v", names, err)
	}
}

// TestExistingClusterGetsNoDriver checks that the driver is left out, as an existing
// cluster may have no EFS.
func TestExistingClusterGetsNoDriver(t *testing.T) {
	d := inCopy(t)
	d.existing, d.registry = true, "registry.example/demo"
	if resources, patches := overlay(t, d); len(patches) != 0 || resources != "resources: [install.yaml]\n" {
		t.Errorf("%s with patches %+v", resources, patches)
	}
	if names, err := d.operators(); err != nil || len(names) < 6 || slices.Contains(names, sharedVolume) {
		t.Errorf("operators %v, %v", names, err)
	}
	path, err := d.controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(content), "sharedVolumes") || !strings.Contains(string(content), "registry.example/demo/demo/openstack:trixie") {
		t.Errorf("%v\n%s", err, content)
	}
	for _, s := range d.steps() {
		if s.name == stepDriver || s.name == stepFiles {
			t.Errorf("an existing cluster has the step %q", s.name)
		}
	}
}

func TestReleaseIsTheTagOfEveryImage(t *testing.T) {
	d := inCopy(t)
	if path, err := d.controlPlane(); err != nil || path != d.example("demo", "controlplane.yaml") {
		t.Errorf("the default release has the ControlPlane %s, %v", path, err)
	}
	d.release = "bookworm"
	path, err := d.controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "demo/openstack:bookworm") || !strings.Contains(string(content), "sharedVolumes") {
		t.Errorf("%v\n%s", err, content)
	}
	for _, example := range []string{"demo-persistent", filepath.Join("demo", "shared-volume")} {
		folder, err := d.folder(example)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil || !strings.Contains(string(content), "newTag: bookworm") {
			t.Errorf("%s: %v\n%s", example, err, content)
		}
	}
}

func TestNodesWithoutACloudGetAnInstanceID(t *testing.T) {
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "35d49563-71b5-48bc-a633-cad11ea2ecc7"}}
	clouded := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "clouded"}, Spec: corev1.NodeSpec{ProviderID: "aws:///zone/i-1"}}
	d := &demo{kube: serve(bare, clouded)}
	if err := d.nameInstances(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bare": "aws:///asterism/i-35d4956371b548bca", "clouded": "aws:///zone/i-1"} {
		node := &corev1.Node{}
		err := d.kube.Get(t.Context(), client.ObjectKey{Name: name}, node)
		if err != nil || node.Spec.ProviderID != want {
			t.Errorf("node %s is %q, %v; want %q", name, node.Spec.ProviderID, err, want)
		}
	}
}

// TestStepsNeedEarlierSteps checks that each need is an earlier step: a step that needs a
// later or a missing one would wait forever.
func TestStepsNeedEarlierSteps(t *testing.T) {
	for _, existing := range []bool{false, true} {
		before := map[string]bool{}
		for _, s := range (&demo{existing: existing}).steps() {
			for _, need := range s.needs {
				if !before[need] {
					t.Errorf("existing %v: step %q needs %q", existing, s.name, need)
				}
			}
			before[s.name] = true
		}
	}
}
