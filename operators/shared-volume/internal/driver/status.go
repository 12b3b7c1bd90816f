package driver

import (
	appsv1 "k8s.io/api/apps/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

const (
	ownManager   = "asterism"
	labelManager = "app.kubernetes.io/managed-by"
	shownUsers   = 10
	maxUsers     = 1 << 30
)

// report writes the owner of the driver, the rollout of the operator's own driver, and the
// users of the driver into the status.
func report(cr *storagev1.SharedVolumeDriver, in engine.Inputs) {
	cr.Status.Installation = installation(cr)
	cr.Status.Driver, cr.Status.Nodes, cr.Status.UsedBy = nil, nil, usedBy(in)
	reportOrphans(cr, in)
	if found, ok := engine.Get[*kstoragev1.CSIDriver](in, volume.DriverName); ok {
		cr.Status.Driver = &storagev1.InstalledDriver{ManagedBy: ownManager}
		if !in.IsChild(found) {
			cr.Status.Driver.ManagedBy = managerOf(found)
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

// installation is derived from the conditions Detected and Installed. While Installed is
// Unknown, the installation does not change.
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

// usedBy returns the SharedVolumes while the driver is to be removed, nil otherwise.
func usedBy(in engine.Inputs) *storagev1.DriverUsers {
	var names []string
	for _, user := range userList.In(in) {
		names = append(names, user.Namespace+"/"+user.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return &storagev1.DriverUsers{SharedVolumes: names[:min(len(names), shownUsers)], Count: int32(min(len(names), maxUsers))} //nolint:gosec // bounded
}

// managerOf a CSIDriver of another owner, by its labels, annotations and field managers.
func managerOf(found *kstoragev1.CSIDriver) string {
	switch label := found.Labels[labelManager]; {
	case label == ownManager:
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
