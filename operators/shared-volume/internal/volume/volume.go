// Package volume builds the objects of a SharedVolume: a PersistentVolumeClaim, and a
// PersistentVolume that is reserved for this claim.
package volume

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs"
)

// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumes/status,verbs=patch
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumes/finalizers,verbs=update
// +kubebuilder:rbac:groups=storage.asterism.dev,resources=sharedvolumepolicies;sharedvolumedrivers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Service is New with the connection to AWS.
var Service = New(efs.NewConnector())

// New returns the stages of a SharedVolume.
func New(aws *efs.Connector) engine.Service[*storagev1.SharedVolume] {
	points := managed{aws}
	return engine.Service[*storagev1.SharedVolume]{
		Name: "shared-volume",
		Stages: []engine.Stage[*storagev1.SharedVolume]{
			{Condition: storagev1.ConditionAllowed, Needs: policies, Build: allowed},
			{Condition: storagev1.ConditionDriverReady, Needs: driver, Build: driverReady},
			{Condition: storagev1.ConditionAccessPointReady, Needs: account, Do: points.ensure, Every: checkEvery, Report: reportAccessPoint},
			{Condition: storagev1.ConditionCleared, Needs: freeNames, Build: cleared},
			{Condition: storagev1.ConditionClaimed, Build: claim, Report: reportClaim},
			{Condition: storagev1.ConditionVolumeReady, Build: volume},
			{Condition: storagev1.ConditionBound, Needs: bound},
		},
		Teardown: []engine.Stage[*storagev1.SharedVolume]{
			{Condition: "ClaimRemoved", Needs: children, Build: withoutClaim},
			{Condition: "VolumeRemoved", Needs: children, Build: withoutVolume},
			{Condition: "AccessPointRemoved", Needs: accountAndVolumes, Do: points.remove},
		},
		Report: report,
		Proof:  proven,
		Owns:   []client.Object{&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}},
	}
}

// driver is judged by a field of its status. A condition would have to be of the newest
// generation, so that a change of nodeSelector would cause writes for every SharedVolume.
func driver(*storagev1.SharedVolume) []engine.Need {
	return []engine.Need{engine.Existing(theDriver()).Counting(nothing).Optional()}
}

func theDriver() *storagev1.SharedVolumeDriver {
	return &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
}

func nothing(client.Object) any { return nil }

// driverReady ignores the rollout of the driver: the restart of a node would cause writes
// for every SharedVolume. The message does not repeat the driver's message, which concerns
// other namespaces as well. While the driver is to be removed, existing claims stay and no
// claim is created.
func driverReady(_ *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	cluster, _ := engine.Get[*storagev1.SharedVolumeDriver](in, storagev1.SharedVolumeDriverName)
	problem := ""
	switch {
	case cluster == nil || cluster.Status.Installation != storagev1.DriverInstalled:
		problem = "is not installed"
	case isToBeRemoved(cluster) && len(engine.ChildrenOf[*corev1.PersistentVolumeClaim](in)) == 0:
		problem = "is to be removed"
	default:
		return nil, nil
	}
	return nil, engine.Wait("the CSI driver %s %s: ask an administrator of the cluster to look at SharedVolumeDriver %s", DriverName, problem, storagev1.SharedVolumeDriverName)
}

func isToBeRemoved(cluster *storagev1.SharedVolumeDriver) bool {
	return cluster.DeletionTimestamp != nil || cluster.Spec.ManagementState == storagev1.StateRemoved
}

// bound waits until Kubernetes has bound the claim to the volume.
func bound(cr *storagev1.SharedVolume) []engine.Need {
	return []engine.Need{engine.Existing(claimNamed(cr)).Where(func(obj client.Object) error {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Status.Phase == corev1.ClaimBound {
			return nil
		}
		return engine.WaitAs(engine.ReasonProgressing, "PersistentVolumeClaim %s is %s", claim.Name, cmp.Or(string(claim.Status.Phase), "new"))
	})}
}

func children(*storagev1.SharedVolume) []engine.Need { return []engine.Need{engine.Children()} }

// report writes the bound claim into the status, independent of the spec. A deletion
// does not change these fields, because each of its steps would change them again.
func report(cr *storagev1.SharedVolume, in engine.Inputs) {
	if !in.KnowsChildren() {
		return
	}
	claims := engine.ChildrenOf[*corev1.PersistentVolumeClaim](in)
	if !slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return claim.DeletionTimestamp != nil }) {
		cr.Status.BlockedBy = nil
	}
	if cr.DeletionTimestamp != nil {
		return
	}
	status := storagev1.SharedVolumeStatus{
		Status: cr.Status.Status, BlockedBy: cr.Status.BlockedBy, ClaimName: cr.Status.ClaimName,
		ManagedAccessPointID: cr.Status.ManagedAccessPointID,
	}
	for _, claim := range claims {
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		status.ClaimRef = &commonv1.ObjectReference{Name: claim.Name}
		for _, volume := range engine.ChildrenOf[*corev1.PersistentVolume](in) {
			if volume.Name == claim.Spec.VolumeName {
				status.VolumeName = volume.Name
				status.FileSystemID, status.AccessPointID = Mounted(volume)
			}
		}
	}
	cr.Status = status
}

// reportClaim records the name of the claim, which no other SharedVolume can then use.
func reportClaim(cr *storagev1.SharedVolume, in engine.Inputs) {
	if claim, ok := engine.Get[*corev1.PersistentVolumeClaim](in, cr.ClaimName()); ok && in.IsChild(claim) {
		cr.Status.ClaimName = claim.Name
	}
}
