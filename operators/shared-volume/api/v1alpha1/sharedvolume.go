package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of a SharedVolume's stages, besides Ready and Stalled.
const (
	// ConditionAllowed is True when a SharedVolumePolicy grants the namespace the access,
	// the file system and the access point of the spec.
	ConditionAllowed = "Allowed"
	// ConditionDriverReady is True when the CSI driver is installed, independent of its rollout
	// on the nodes. While the driver is to be removed, DriverReady is True only for a
	// SharedVolume that has a claim.
	ConditionDriverReady = "DriverReady"
	// ConditionAccessPointReady is True when the access point that the operator manages for
	// the SharedVolume is available, or the spec has an access point.
	ConditionAccessPointReady = "AccessPointReady"
	// ConditionCleared is True when no claim or volume of an earlier spec exists, and the
	// names of the claim and of the volume belong to no other owner.
	ConditionCleared = "Cleared"
	// ConditionClaimed is True when the claim exists. The claim may not be bound yet.
	ConditionClaimed = "Claimed"
	// ConditionVolumeReady is True when the PersistentVolume exists and is reserved for the
	// claim.
	ConditionVolumeReady = "VolumeReady"
	// ConditionBound is True when Kubernetes has bound the claim.
	ConditionBound = "Bound"
)

// ReasonDenied is the reason of Allowed while no policy grants the access.
const ReasonDenied = "Denied"

// ReasonLimitReached is the reason of Allowed or AccessPointReady while the namespace has as
// many managed access points as its grant allows.
const ReasonLimitReached = "LimitReached"

// Reasons of AccessPointReady that concern AWS.
const (
	// ReasonAWSNotConfigured is the reason while the operator has no region or no credentials.
	ReasonAWSNotConfigured = "AWSNotConfigured"
	// ReasonAWSDenied is the reason while the operator lacks a right in AWS.
	ReasonAWSDenied = "AWSDenied"
	// ReasonAWSLimitReached is the reason while a quota of AWS is used up.
	ReasonAWSLimitReached = "AWSLimitReached"
	// ReasonAWSThrottled is the reason while AWS refuses calls because there are too many.
	ReasonAWSThrottled = "AWSThrottled"
	// ReasonAWSRefused is the reason while AWS refuses a call for another cause.
	ReasonAWSRefused = "AWSRefused"
	// ReasonAWSUnreachable is the reason while AWS does not answer, or answers with its own
	// failure.
	ReasonAWSUnreachable = "AWSUnreachable"
)

// ReasonGone is the reason of a condition while the claim or the volume is gone and cannot
// be recreated.
const ReasonGone = "Gone"

// SharedVolumeConditions are the condition types of the stages, in their order.
var SharedVolumeConditions = []string{
	ConditionAllowed,
	ConditionDriverReady,
	ConditionAccessPointReady,
	ConditionCleared,
	ConditionClaimed,
	ConditionVolumeReady,
	ConditionBound,
}

// Access defines whether pods may write.
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
// +kubebuilder:validation:XValidation:rule="self.matches('^fs-[0-9a-f]{8,40}$')",message="must be the ID of a file system: fs- and 8 to 40 hexadecimal digits in lower case, such as fs-484648c8"
type FileSystemID string

// AccessPointID identifies an access point of an EFS file system.
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self.matches('^fsap-[0-9a-f]{8,40}$')",message="must be the ID of an access point: fsap- and 8 to 40 hexadecimal digits in lower case, such as fsap-097bd0daaba932e64"
type AccessPointID string

// MountOption is an option of mount(8) for NFS. Options that change the mounted directory
// or the encryption are not accepted.
// +kubebuilder:validation:Enum=noresvport;noatime;nodiratime;relatime;nodev;noexec;nosuid
type MountOption string

// SharedVolume creates a PersistentVolumeClaim in its namespace for an access point of an
// EFS file system. Pods on any node, in any zone, can mount the claim at the same time. An
// administrator grants the access with a SharedVolumePolicy.
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

	// spec is the desired state. A change of any field except mountOptions deletes and
	// recreates the claim when no pod uses the claim. Until then no new pod can start with
	// the claim, and the deletion cannot be cancelled. The data stay.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.accessPointID) == has(oldSelf.accessPointID)",message="accessPointID must not be added or removed: create another SharedVolume"
	// +kubebuilder:validation:XValidation:rule="has(self.accessPointID) || self.fileSystemID == oldSelf.fileSystemID",message="fileSystemID must not change without accessPointID: create another SharedVolume"
	Spec SharedVolumeSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status SharedVolumeStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (s *SharedVolume) Common() *commonv1.Status { return &s.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (s *SharedVolume) IsPaused() bool { return s.Spec.Paused }

// ClaimName returns the name of the claim.
func (s *SharedVolume) ClaimName() string {
	if s.Spec.ClaimName != "" {
		return s.Spec.ClaimName
	}
	return s.Name
}

// SharedVolumeSpec is the desired state of a SharedVolume.
type SharedVolumeSpec struct {
	commonv1.Pause `json:",inline"`

	// fileSystemID is the ID of the EFS file system, for example fs-484648c8.
	// +required
	FileSystemID FileSystemID `json:"fileSystemID"`

	// accessPointID is the ID of an access point of that file system, for example
	// fsap-097bd0daaba932e64. The access point determines the mounted directory and the
	// owner of files. Default: the operator creates an access point with a directory of its
	// own, if a SharedVolumePolicy has a grant with accessPoints Managed. It deletes this
	// access point with the SharedVolume and keeps the files.
	// +optional
	AccessPointID AccessPointID `json:"accessPointID,omitempty"`

	// claimName is the name of the PersistentVolumeClaim. Default: the name of the
	// SharedVolume.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClaimName string `json:"claimName,omitempty"`

	// access is ReadWrite, or ReadOnly for pods that must not write. Default: ReadWrite.
	// +optional
	// +default="ReadWrite"
	Access Access `json:"access,omitempty"`

	// mountOptions of the volume: noresvport, noatime, nodiratime, relatime, nodev, noexec
	// or nosuid. For a read-only mount, set access to ReadOnly. A change applies to pods that
	// start afterwards.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	MountOptions []MountOption `json:"mountOptions,omitempty"`

	// capacity of the claim, in bytes or with a unit such as 20Gi, from 1Mi to 1Ei. EFS
	// ignores the capacity; quotas count it. Default: 1Gi. A change recreates the claim.
	// +optional
	// +default="1Gi"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('1Ei')) <= 0",message="must be from 1Mi to 1Ei, such as 20Gi"
	Capacity resource.Quantity `json:"capacity,omitzero"`
}

// SharedVolumeStatus is the observed state of a SharedVolume.
type SharedVolumeStatus struct {
	commonv1.Status `json:",inline"`

	// claimName is the name of the claim of this SharedVolume, also between deletion and
	// recreation of the claim. No other SharedVolume of the namespace can use the name.
	// Absent until the claim was created once.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`

	// claimRef names the bound claim. Absent while no claim is bound.
	// +optional
	ClaimRef *commonv1.ObjectReference `json:"claimRef,omitempty"`

	// volumeName is the name of the PersistentVolume to which the claim is bound.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeName string `json:"volumeName,omitempty"`

	// fileSystemID of the volume to which the claim is bound. It differs from the spec
	// while a change waits or is denied.
	// +optional
	// +kubebuilder:validation:MaxLength=43
	FileSystemID string `json:"fileSystemID,omitempty"`

	// accessPointID of the volume to which the claim is bound. It differs from the spec
	// while a change waits or is denied.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	AccessPointID string `json:"accessPointID,omitempty"`

	// managedAccessPointID is the ID of the access point that the operator has created for
	// the SharedVolume. Absent if the spec has an access point.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	ManagedAccessPointID string `json:"managedAccessPointID,omitempty"`

	// blockedBy lists the pods that delay the deletion of the claim.
	// +optional
	BlockedBy *Blockers `json:"blockedBy,omitempty"`
}

// Blockers are the pods that use a claim which is being deleted.
type Blockers struct {
	// pods are the names of the first ten pods in alphabetical order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	Pods []string `json:"pods"`

	// count is the number of all these pods.
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
