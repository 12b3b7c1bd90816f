package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of a SharedVolume's stages, besides Ready and Stalled.
const (
	// ConditionAllowed is True when a SharedVolumePolicy grants the namespace
	// what the spec asks for.
	ConditionAllowed = "Allowed"
	// ConditionDriverReady is True when the CSI driver is installed. Its rollout
	// on the nodes does not matter here.
	ConditionDriverReady = "DriverReady"
	// ConditionCleared is True when nothing is left of an earlier spec, and what
	// there is of the claim and its volume belongs together.
	ConditionCleared = "Cleared"
	// ConditionClaimed is True when the claim exists, which may not be bound yet.
	ConditionClaimed = "Claimed"
	// ConditionVolumeReady is True when the PersistentVolume exists, reserved for
	// this claim, and Kubernetes has accepted it.
	ConditionVolumeReady = "VolumeReady"
	// ConditionBound is True when the claim is bound to that volume.
	ConditionBound = "Bound"
)

// ReasonDenied is the reason of Allowed while no policy grants what is asked for.
const ReasonDenied = "Denied"

// ReasonGone is the reason of a condition about a claim or volume that is gone, while
// it cannot be made anew.
const ReasonGone = "Gone"

// SharedVolumeConditions are the condition types of the stages, in their order.
var SharedVolumeConditions = []string{
	ConditionAllowed,
	ConditionDriverReady,
	ConditionCleared,
	ConditionClaimed,
	ConditionVolumeReady,
	ConditionBound,
}

// Access says whether pods may write.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type Access string

const (
	// AccessReadWrite lets pods read and write.
	AccessReadWrite Access = "ReadWrite"
	// AccessReadOnly lets pods read.
	AccessReadOnly Access = "ReadOnly"
)

// FileSystemID identifies an EFS file system.
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^fs-[0-9a-f]{8,40}$')",message="must be the ID of a file system: fs- and 8 to 40 of 0-9 and a-f, such as fs-484648c8"
type FileSystemID string

// AccessPointID identifies an access point of an EFS file system.
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^fsap-[0-9a-f]{8,40}$')",message="must be the ID of an access point: fsap- and 8 to 40 of 0-9 and a-f, such as fsap-097bd0daaba932e64"
type AccessPointID string

// MountOption is an option of mount(8) for NFS. Those that choose what is
// mounted, or how it is encrypted, are the operator's.
// +kubebuilder:validation:Enum=noresvport;noatime;nodiratime;relatime;nodev;noexec;nosuid
type MountOption string

// SharedVolume makes a PersistentVolumeClaim in its namespace that pods on any
// node, in any zone, can mount at the same time: an access point of an EFS file
// system. An administrator grants its use by a SharedVolumePolicy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedvolumes,scope=Namespaced,shortName=shvol,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="File System",type=string,JSONPath=`.status.fileSystemID`
// +kubebuilder:printcolumn:name="Access Point",type=string,JSONPath=`.status.accessPointID`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.status.claimRef.name`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 253",message="metadata.name must be at most 253 characters: the claim is named after it"
type SharedVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted. A change of anything but mountOptions deletes the
	// claim and makes it anew, which waits until no pod uses it. Until then no new
	// pod can start with it, and it cannot be taken back. The data are not touched.
	// +required
	Spec SharedVolumeSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status SharedVolumeStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (s *SharedVolume) Common() *commonv1.Status { return &s.Status.Status }

// ClaimName is the name of the claim.
func (s *SharedVolume) ClaimName() string {
	if s.Spec.ClaimName != "" {
		return s.Spec.ClaimName
	}
	return s.Name
}

// SharedVolumeSpec is what is wanted of a SharedVolume.
type SharedVolumeSpec struct {
	// fileSystemID of the EFS file system, for example fs-484648c8.
	// +required
	FileSystemID FileSystemID `json:"fileSystemID"`

	// accessPointID of the access point in that file system, for example
	// fsap-097bd0daaba932e64. It decides which directory is mounted, and to whom
	// files belong.
	// +required
	AccessPointID AccessPointID `json:"accessPointID"`

	// claimName is the name of the PersistentVolumeClaim that is made. Default:
	// the SharedVolume's own name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClaimName string `json:"claimName,omitempty"`

	// access is ReadWrite, or ReadOnly for pods that must not write. Default:
	// ReadWrite.
	// +optional
	// +default="ReadWrite"
	Access Access `json:"access,omitempty"`

	// mountOptions are added when a pod mounts the volume: noresvport, noatime,
	// nodiratime, relatime, nodev, noexec or nosuid; reading only is for access to
	// say. A change is in effect for pods that start afterwards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	MountOptions []MountOption `json:"mountOptions,omitempty"`

	// capacity that the claim asks for, in bytes or with a unit, such as 20Gi: from
	// 1Mi to 1Ei. EFS grows with what is written and ignores it; quotas count it. A
	// change makes the claim anew. Default: 1Gi.
	// +optional
	// +default="1Gi"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ei')) <= 0",message="must be from 1Mi to 1Ei, such as 20Gi"
	Capacity resource.Quantity `json:"capacity,omitzero"`
}

// SharedVolumeStatus is what was observed of a SharedVolume.
type SharedVolumeStatus struct {
	commonv1.Status `json:",inline"`

	// claimName is the name of the claim that belongs to this SharedVolume, also
	// while the claim is away to be recreated: no other SharedVolume of the
	// namespace can take the name. Absent until the claim was created once.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`

	// claimRef names the claim that is bound; pods that use it keep it until they
	// end. Absent while none is.
	// +optional
	ClaimRef *commonv1.ObjectReference `json:"claimRef,omitempty"`

	// volumeName is the name of the PersistentVolume that the claim is bound to.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeName string `json:"volumeName,omitempty"`

	// fileSystemID that the claim gives now, which is not that of the spec while
	// a change waits or is denied.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	FileSystemID string `json:"fileSystemID,omitempty"`

	// accessPointID that the claim gives now.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	AccessPointID string `json:"accessPointID,omitempty"`

	// blockedBy says who uses the claim while it should go.
	// +optional
	BlockedBy *Blockers `json:"blockedBy,omitempty"`
}

// Blockers are the pods that use a claim which is to be deleted.
type Blockers struct {
	// pods are the names of the first ten.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	Pods []string `json:"pods"`

	// count of all of them.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// SharedVolumeList is a list of SharedVolumes.
//
// +kubebuilder:object:root=true
type SharedVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []SharedVolume `json:"items"`
}
