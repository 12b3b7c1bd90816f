package volume

import (
	"maps"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

const (
	// DriverName is the name of the CSI driver for EFS.
	DriverName = "efs.csi.aws.com"
	// StorageClassName is the class of every volume and claim, so that quotas can count
	// them. The class provisions nothing.
	StorageClassName = "shared-volume"
	// readOnlyOption mounts a volume read-only. The driver refuses the access mode
	// ReadOnlyMany.
	readOnlyOption = "ro"
	// namePrefix of volumes, before a hash.
	namePrefix = "sv-"
)

// Name returns the name of the volume of a SharedVolume. The name proves the owner of the
// volume: it is a hash of the UID of the SharedVolume and of the handle, and the name and
// the handle of a volume are immutable.
func Name(cr *storagev1.SharedVolume) string {
	return nameFor(cr, Handle(cr.Spec.FileSystemID, accessPoint(cr)))
}

// names matches the names of the volumes of SharedVolumes.
var names = regexp.MustCompile("^" + namePrefix + "[0-9a-f]{16}$")

func nameFor(cr *storagev1.SharedVolume, handle string) string {
	return namePrefix + engine.Hash(cr.UID, handle)
}

// proven says whether the volume or the claim was created for this SharedVolume, for its
// present or a former spec. Labels and annotations are no proof, because they can be forged.
// The class and the selector of a claim are immutable, and config/rbac/admission.yaml lets the
// operator write only claims that have them.
func proven(cr *storagev1.SharedVolume, child client.Object) bool {
	switch child := child.(type) {
	case *corev1.PersistentVolume:
		return child.Spec.CSI != nil && child.Name == nameFor(cr, child.Spec.CSI.VolumeHandle)
	case *corev1.PersistentVolumeClaim:
		class, selector := child.Spec.StorageClassName, child.Spec.Selector
		return class != nil && *class == StorageClassName && selector != nil && maps.Equal(selector.MatchLabels, engine.OwnedBy(cr))
	}
	return true
}

// IsOfSharedVolume says whether a volume was created for the SharedVolume that its label
// names. The SharedVolume may be gone.
func IsOfSharedVolume(volume *corev1.PersistentVolume) bool {
	return volume.Spec.CSI != nil && volume.Name == namePrefix+engine.Hash(engine.OwnerUID(volume), volume.Spec.CSI.VolumeHandle)
}

// volume builds the volume, reserved for the claim by the UID of the claim: no other claim
// can be bound to the volume, and Kubernetes binds the two at once. A volume that is
// reserved only by name would first be updated by Kubernetes. A claim that names its
// volume would be bound only in the next sync of Kubernetes, which comes every 15 s.
func volume(cr *storagev1.SharedVolume, in engine.Inputs) ([]engine.Child, error) {
	claim, exists := engine.Get[*corev1.PersistentVolumeClaim](in, cr.ClaimName())
	if !exists {
		return nil, engine.Wait("PersistentVolumeClaim %s does not exist", cr.ClaimName())
	}
	source := applycorev1.CSIPersistentVolumeSource().WithDriver(DriverName).
		WithVolumeHandle(Handle(cr.Spec.FileSystemID, accessPoint(cr)))
	if readOnly(cr) {
		source.WithReadOnly(true) // immutable, unlike the mount option
	}
	return []engine.Child{applycorev1.PersistentVolume(Name(cr)).WithSpec(
		applycorev1.PersistentVolumeSpec().
			WithCapacity(capacity(cr)).
			WithAccessModes(corev1.ReadWriteMany).
			WithPersistentVolumeReclaimPolicy(corev1.PersistentVolumeReclaimRetain).
			WithStorageClassName(StorageClassName).
			WithVolumeMode(corev1.PersistentVolumeFilesystem).
			WithMountOptions(mountOptions(cr)...).
			WithClaimRef(applycorev1.ObjectReference().WithAPIVersion("v1").WithKind("PersistentVolumeClaim").
				WithNamespace(cr.Namespace).WithName(claim.Name).WithUID(claim.UID)).
			WithCSI(source),
	)}, nil
}

func mountOptions(cr *storagev1.SharedVolume) []string {
	var options []string
	if readOnly(cr) {
		options = append(options, readOnlyOption)
	}
	for _, option := range cr.Spec.MountOptions {
		options = append(options, string(option))
	}
	return options
}

func readOnly(cr *storagev1.SharedVolume) bool { return wanted(cr) != storagev1.AccessReadWrite }

// claim selects, by label, only volumes of this SharedVolume.
func claim(cr *storagev1.SharedVolume, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{applycorev1.PersistentVolumeClaim(cr.ClaimName(), "").WithSpec(
		applycorev1.PersistentVolumeClaimSpec().
			WithAccessModes(corev1.ReadWriteMany).
			WithStorageClassName(StorageClassName).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(engine.OwnedBy(cr))).
			WithResources(applycorev1.VolumeResourceRequirements().WithRequests(capacity(cr))),
	)}, nil
}

func capacity(cr *storagev1.SharedVolume) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: cr.Spec.Capacity}
}

func claimNamed(cr *storagev1.SharedVolume) *corev1.PersistentVolumeClaim {
	return claimOf(cr.ClaimName())
}

func claimOf(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func volumeNamed(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
