package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// ConditionFileSystemReady is the only stage of a SharedFileSystem. It is True when the file
// system is available, and has a mount target in each subnet of the spec.
const ConditionFileSystemReady = "FileSystemReady"

// SharedFileSystemConditions are the condition types of the stages, in their order.
var SharedFileSystemConditions = []string{ConditionFileSystemReady}

// DeletionPolicy defines what the deletion of a SharedFileSystem deletes.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain keeps the file system and its mount targets.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete deletes the mount targets and the file system with all files.
	DeletionDelete DeletionPolicy = "Delete"
)

// Switch turns a feature of a file system on or off.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

const (
	// SwitchEnabled turns the feature on.
	SwitchEnabled Switch = "Enabled"
	// SwitchDisabled turns it off.
	SwitchDisabled Switch = "Disabled"
)

// SharedFileSystem is an EFS file system: an existing one, whose state is shown, or one that
// the operator creates with its mount targets. It needs spec.aws of the SharedVolumeDriver.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedfilesystems,scope=Cluster,shortName=svf
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="File System",type=string,JSONPath=`.status.fileSystemID`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.sizeBytes`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SharedFileSystem struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec SharedFileSystemSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status SharedFileSystemStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (f *SharedFileSystem) Common() *commonv1.Status { return &f.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (f *SharedFileSystem) IsPaused() bool { return f.Spec.Paused }

// SharedFileSystemSpec is an existing or a managed file system.
//
// +kubebuilder:validation:XValidation:rule="has(self.fileSystemID) != has(self.managed)",message="must have either fileSystemID or managed"
// +kubebuilder:validation:XValidation:rule="(has(self.fileSystemID) ? self.fileSystemID : '-') == (has(oldSelf.fileSystemID) ? oldSelf.fileSystemID : '-')",message="fileSystemID must not change: create another SharedFileSystem"
type SharedFileSystemSpec struct {
	commonv1.Pause `json:",inline"`

	// fileSystemID is the ID of an existing file system, which the operator never changes or
	// deletes.
	// +optional
	FileSystemID FileSystemID `json:"fileSystemID,omitempty"`

	// managed describes a file system that the operator creates.
	// +optional
	Managed *ManagedFileSystem `json:"managed,omitempty"`
}

// ManagedFileSystem describes a file system that the operator creates. Mount targets can be
// added later; of the other fields, only deletionPolicy can change.
//
// +kubebuilder:validation:XValidation:rule="self.performanceMode == oldSelf.performanceMode && self.throughputMode == oldSelf.throughputMode && self.encryption == oldSelf.encryption && self.backup == oldSelf.backup && (has(self.kmsKeyID) ? self.kmsKeyID : '-') == (has(oldSelf.kmsKeyID) ? oldSelf.kmsKeyID : '-')",message="must not change except deletionPolicy and additional mountTargets: the operator does not change a file system"
// +kubebuilder:validation:XValidation:rule="oldSelf.mountTargets.all(o, self.mountTargets.exists(n, n.subnetID == o.subnetID))",message="mountTargets must not be removed: pods may use them"
// +kubebuilder:validation:XValidation:rule="self.encryption == 'Enabled' || !has(self.kmsKeyID)",message="must have encryption Enabled to have kmsKeyID"
// +kubebuilder:validation:XValidation:rule="self.performanceMode != 'maxIO' || self.throughputMode == 'bursting'",message="must have throughputMode bursting to have performanceMode maxIO: EFS has no elastic throughput with maxIO"
type ManagedFileSystem struct {
	// performanceMode is generalPurpose, or maxIO, which needs throughputMode bursting. Default:
	// generalPurpose.
	// +optional
	// +default="generalPurpose"
	// +kubebuilder:validation:Enum=generalPurpose;maxIO
	PerformanceMode string `json:"performanceMode,omitempty"`

	// throughputMode is elastic or bursting. Default: elastic.
	// +optional
	// +default="elastic"
	// +kubebuilder:validation:Enum=elastic;bursting
	ThroughputMode string `json:"throughputMode,omitempty"`

	// encryption of the stored files is Enabled or Disabled. Default: Enabled.
	// +optional
	// +default="Enabled"
	Encryption Switch `json:"encryption,omitempty"`

	// kmsKeyID is the ID or ARN of the KMS key. Default: the key of EFS in the account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	KMSKeyID string `json:"kmsKeyID,omitempty"`

	// backup by AWS Backup every day is Enabled or Disabled. Default: Enabled.
	// +optional
	// +default="Enabled"
	Backup Switch `json:"backup,omitempty"`

	// mountTargets through which nodes mount the file system, at most one for each
	// availability zone.
	// +required
	// +listType=map
	// +listMapKey=subnetID
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	MountTargets []MountTarget `json:"mountTargets"`

	// deletionPolicy is Retain or Delete. Delete deletes the file system with all files when
	// the SharedFileSystem is deleted, and no SharedVolume or PersistentVolume of the cluster
	// uses the file system. Default: Retain.
	// +optional
	// +default="Retain"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// MountTarget is a mount target in a subnet.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: the operator does not change a mount target"
type MountTarget struct {
	// subnetID is the ID of the subnet.
	// +required
	// +kubebuilder:validation:MaxLength=47
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-f]{8,40}$`
	SubnetID string `json:"subnetID"`

	// securityGroupIDs are the IDs of the security groups, which must let the nodes reach
	// port 2049. Default: the default security group of the VPC.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:Pattern=`^sg-[0-9a-f]{8,40}$`
	SecurityGroupIDs []string `json:"securityGroupIDs,omitempty"`
}

// SharedFileSystemStatus is the observed state of a file system, at most eleven minutes old.
type SharedFileSystemStatus struct {
	commonv1.Status `json:",inline"`

	// fileSystemID is the ID of the file system, for SharedVolumePolicies.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	FileSystemID string `json:"fileSystemID,omitempty"`

	// state is the life cycle state in EFS, such as available.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`

	// sizeBytes is the metered size of all files, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// mountTargets of the file system, by availability zone.
	// +optional
	// +listType=map
	// +listMapKey=availabilityZone
	// +kubebuilder:validation:MaxItems=16
	MountTargets []MountTargetState `json:"mountTargets,omitempty"`
}

// MountTargetState is the observed state of a mount target.
type MountTargetState struct {
	// availabilityZone is the name of the zone.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AvailabilityZone string `json:"availabilityZone"`

	// subnetID is the ID of the subnet.
	// +required
	// +kubebuilder:validation:MaxLength=47
	SubnetID string `json:"subnetID"`

	// state is the life cycle state in EFS, such as available.
	// +required
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state"`
}

// SharedFileSystemList is a list of SharedFileSystems.
//
// +kubebuilder:object:root=true
type SharedFileSystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []SharedFileSystem `json:"items"`
}
