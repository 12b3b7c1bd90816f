package driver

import (
	appsv1 "k8s.io/api/apps/v1"
	kstoragev1 "k8s.io/api/storage/v1"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

const (
	us           = "asterism"
	labelManager = "app.kubernetes.io/managed-by"
)

// report says whose driver the cluster has, and how far ours is.
func report(cr *storagev1.SharedVolumeDriver, in engine.Inputs, images Images) {
	cr.Status.Driver, cr.Status.Nodes = nil, nil
	if found, ok := engine.Get[*kstoragev1.CSIDriver](in, volume.DriverName); ok {
		cr.Status.Driver = &storagev1.InstalledDriver{ManagedBy: us, Image: images.Driver}
		if !in.Ours(found) {
			cr.Status.Driver = &storagev1.InstalledDriver{ManagedBy: whose(found)}
			return
		}
	}
	for _, set := range engine.ChildrenOf[*appsv1.DaemonSet](in) {
		cr.Status.Nodes = &storagev1.NodeRollout{
			Desired: set.Status.DesiredNumberScheduled,
			Updated: set.Status.UpdatedNumberScheduled,
			Ready:   set.Status.NumberReady,
		}
	}
}

// whose is what a foreign CSIDriver says about whoever looks after it.
func whose(found *kstoragev1.CSIDriver) string {
	switch label := found.Labels[labelManager]; {
	case label == us:
		return "an earlier SharedVolumeDriver"
	case label != "":
		return label
	}
	if release := found.Annotations["meta.helm.sh/release-name"]; release != "" {
		return "Helm release " + release
	}
	for _, entry := range found.ManagedFields {
		if entry.Manager != "" {
			return entry.Manager
		}
	}
	return "unknown"
}
