package packages

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// sharedVolumesWithOLM adds specs that need the ControlPlane.
func sharedVolumesWithOLM() {
	sharedVolumes := func(ctx context.Context) string {
		return kubectl(ctx, "get", "controlplane/demo", "--namespace", cloudNamespace, `--output=jsonpath={.status.conditions[?(@.type=="SharedVolumesReady")].message}`)
	}
	patch := func(ctx context.Context, operations string) {
		kubectl(ctx, "patch", "controlplane/demo", "--namespace", cloudNamespace, "--type=json", "--patch", operations)
	}

	It("names the operator that a ControlPlane with shared volumes needs", func(ctx SpecContext) {
		patch(ctx, `[{"op": "add", "path": "/spec/sharedVolumes", "value": [{"name": "images", "fileSystemID": "fs-484648c8", "accessPointID": "fsap-097bd0daaba932e64"}]}]`)
		Eventually(func() string { return sharedVolumes(ctx) }).WithContext(ctx).Should(ContainSubstring("install the operator shared-volume"))
		Expect(kubectl(ctx, "get", "controlplane/demo", "--namespace", cloudNamespace, `--output=jsonpath={.status.conditions[?(@.type=="NovaReady")].status}`)).To(Equal("True"))
	})

	It("installs the operator of shared volumes in a namespace of its own", func(ctx SpecContext) {
		measure("the operator of shared volumes Succeeded", func() {
			subscribe(ctx, "shared-volume.yaml")
			expectInstalled(ctx, storageNamespace, first, "shared-volume")
		})
		By("waiting for the ControlPlane, whose operator has not been restarted")
		Eventually(func() string { return sharedVolumes(ctx) }).WithContext(ctx).Should(ContainSubstring("SharedVolumePolicy"))
		patch(ctx, `[{"op": "remove", "path": "/spec/sharedVolumes"}]`)
		expectReady(ctx)
	})

	It("gives the operator of shared volumes the documented rights", func(ctx SpecContext) {
		may := func(verb, resource, namespace string) string {
			return canAs(ctx, storageNamespace, "asterism-shared-volume-operator", verb, resource, namespace)
		}
		for _, namespace := range []string{cloudNamespace, "default"} {
			Expect(may("create", "persistentvolumeclaims", namespace)).To(Equal("yes"))
			Expect(may("list", "pods", namespace)).To(Equal("yes"))
		}
		Expect(may("create", "persistentvolumes", "")).To(Equal("yes"))
		Expect(may("patch", "nodes", "")).To(Equal("yes"))
		for _, namespace := range []string{cloudNamespace, systemNamespace, storageNamespace, "default", "kube-system"} {
			for _, resource := range []string{"secrets", "configmaps"} {
				Expect(may("get", resource, namespace)).To(Equal("no"), resource+" in "+namespace)
			}
			for _, resource := range []string{"pods", "deployments.apps", "jobs.batch"} {
				Expect(may("create", resource, namespace)).To(Equal("no"), resource+" in "+namespace)
			}
		}
	})

	It("runs the CSI driver with images of a mirror", func(ctx SpecContext) {
		images := map[string]string{}
		for variable, name := range map[string]string{
			"RELATED_IMAGE_EFS_CSI_DRIVER": "efs-csi-driver", "RELATED_IMAGE_NODE_DRIVER_REGISTRAR": "node-driver-registrar", "RELATED_IMAGE_LIVENESS_PROBE": "liveness-probe",
		} {
			_, path, _ := strings.Cut(first.image(name).pinned(), "/")
			images[variable] = imagePrefix + "/" + path
		}
		overrideImages(ctx, storageNamespace, "shared-volume-operator", images)
		for _, image := range images {
			Eventually(func() []podImage { return podImages(ctx) }).WithContext(ctx).Should(ContainElement(HaveField("Image", image)))
		}
	})
}

// removeDriver removes the CSI driver while its operator runs.
func removeDriver(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "sharedvolumedriver/cluster", "--timeout=2m")
	Expect(kubectl(ctx, "get", "namespace/asterism-efs-csi", "--ignore-not-found", "--output=name")).To(BeEmpty())
}

// policies is the path of the policies that a bundle cannot contain.
func policies(of release) string { return filepath.Join(of.folder, "dist", "policies.yaml") }
