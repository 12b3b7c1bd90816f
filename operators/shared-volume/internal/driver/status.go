package driver

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

const (
	us           = "asterism"
	labelManager = "app.kubernetes.io/managed-by"
	shownUsers   = 10
	maxUsers     = 1 << 30
)

// report says whose driver the cluster has, and how far ours is.
func report(cr *storagev1.SharedVolumeDriver, in engine.Inputs) {
	cr.Status.Installation = installation(cr)
	cr.Status.Driver, cr.Status.Nodes, cr.Status.UsedBy = nil, nil, usedBy(in)
	reportOrphans(cr, in)
	if found, ok := engine.Get[*kstoragev1.CSIDriver](in, volume.DriverName); ok {
		cr.Status.Driver = &storagev1.InstalledDriver{ManagedBy: us}
		if !in.Ours(found) {
			cr.Status.Driver.ManagedBy = whose(found)
			return
		}
	}
	for _, set := range engine.ChildrenOf[*appsv1.DaemonSet](in) {
		cr.Status.Nodes = &storagev1.NodeRollout{
			Desired: set.Status.DesiredNumberScheduled,
			Updated: set.Status.UpdatedNumberScheduled,
			Ready:   set.Status.NumberReady,
		}
		if cr.Status.Driver != nil {
			cr.Status.Driver.Image = set.Spec.Template.Spec.Containers[0].Image
		}
	}
}

// installation is judged by the driver's own conditions. A condition that no stage has
// looked at leaves the installation as it was.
func installation(cr *storagev1.SharedVolumeDriver) storagev1.Installation {
	found := meta.FindStatusCondition(cr.Status.Conditions, storagev1.ConditionInstalled)
	switch {
	case meta.IsStatusConditionFalse(cr.Status.Conditions, storagev1.ConditionDetected) || found == nil:
		return storagev1.DriverMissing
	case found.Status == metav1.ConditionUnknown:
		return cr.Status.Installation
	case found.Status == metav1.ConditionTrue || found.Reason == storagev1.ReasonInUse:
		return storagev1.DriverInstalled
	}
	return storagev1.DriverMissing
}

// usedBy is known while something is to be removed.
func usedBy(in engine.Inputs) *storagev1.DriverUsers {
	var names []string
	for _, user := range engine.Listed[*storagev1.SharedVolume](in) {
		names = append(names, user.Namespace+"/"+user.Name)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &storagev1.DriverUsers{SharedVolumes: names[:min(len(names), shownUsers)], Count: int32(min(len(names), maxUsers))} //nolint:gosec // bounded
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
	if found.Annotations["csi.openshift.io/managed"] == "true" {
		return "an operator of OpenShift"
	}
	for _, entry := range found.ManagedFields {
		if entry.Manager != "" {
			return entry.Manager
		}
	}
	return "unknown"
}
