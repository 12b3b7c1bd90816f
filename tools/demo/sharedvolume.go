package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"asterism.dev/cli/cluster"
	"asterism.dev/tools/internal/driverimage"
	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/progress"
)

// sharedVolume is the operator that installs the driver.
const sharedVolume = "shared-volume"

// driverImage replaces an image of the operator's default public registry.
type driverImage struct{ variable, name string }

var driverImages = []driverImage{
	{"RELATED_IMAGE_EFS_CSI_DRIVER", driverimage.Driver},
	{"RELATED_IMAGE_NODE_DRIVER_REGISTRAR", driverimage.Registrar},
	{"RELATED_IMAGE_LIVENESS_PROBE", driverimage.Probe},
}

func (d *demo) driverArchive() string { return d.work("images", "efs-driver.tar") }

// buildDriver builds the real driver and the stand-in for EFS.
func (d *demo) buildDriver(ctx context.Context, line *progress.Line) error {
	const driver, standIn = "aws-efs-csi-driver", "efs-stand-in"
	d.driver = ""
	for binary, source := range map[string]string{driver: "github.com/kubernetes-sigs/aws-efs-csi-driver/cmd", standIn: "."} {
		err := d.build(ctx, line, binary, binary, gobuild.Program{
			Dir: filepath.Join(d.root, "tools", "efs-driver"), Packages: []string{source}, Output: d.work("bin", binary),
		})
		if err != nil {
			return err
		}
	}
	tag, err := digest(d.work("bin", driver), d.work("bin", standIn))
	if err != nil {
		return err
	}
	d.driver = tag
	return driverimage.Write(ctx, tag, d.work("bin", driver), d.work("bin", standIn), d.driverArchive())
}

// driverImages sets the driver's images in the operator's environment, as on a cluster
// without access to the public registries.
func (d *demo) driverImages() types.Patch {
	name := operatorDeployment(sharedVolume).name
	lines := []string{
		"apiVersion: apps/v1", "kind: Deployment", "metadata: {name: " + name + "}",
		"spec: {template: {spec: {containers: [{name: operator, env: [",
	}
	for _, image := range driverImages {
		lines = append(lines, fmt.Sprintf("  {name: %s, value: %q},", image.variable, image.name+":"+d.driver))
	}
	return types.Patch{
		Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: cluster.Deployment.Kind}, Name: name}},
		Patch:  strings.Join(append(lines, "]}]}}}"), "\n"),
	}
}

// shareFiles creates the SharedVolumeDriver, which is the administrator's part, and starts
// two pods with a shared volume.
func (d *demo) shareFiles(ctx context.Context, line *progress.Line) error {
	if err := d.apply(ctx, line, "driver", "-f", d.example("shared-volume", "driver.yaml")); err != nil {
		return err
	}
	folder, err := d.folder(filepath.Join("demo", "shared-volume"))
	if err != nil {
		return err
	}
	if err := d.apply(ctx, line, "files", "-k", folder); err != nil {
		return err
	}
	return d.awaitAll(ctx, line,
		object{kind: driverKind, name: "cluster"},
		statefulSet("shared-files"),
	)
}

// nameInstances sets spec.providerID of nodes without one: the driver reads its instance's
// ID from this field, and ends at its start if the field is empty.
func (d *demo) nameInstances(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := d.kube.WithWatch.List(ctx, &nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if node.Spec.ProviderID != "" {
			continue
		}
		before := node.DeepCopy()
		node.Spec.ProviderID = "aws:///asterism/i-" + strings.ReplaceAll(string(node.UID), "-", "")[:17]
		if err := d.kube.Patch(ctx, &node, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	return nil
}

// driverFiles are the file and the folders that the driver's pods create outside the
// cluster's folder. Folders with other content stay.
var driverFiles = []string{
	"/var/amazon/efs/efs-utils.conf", "/var/amazon/efs", "/var/amazon", "/etc/amazon/efs", "/etc/amazon", "/run/efs",
}

func removeDriverFolders() error {
	for _, path := range driverFiles {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
