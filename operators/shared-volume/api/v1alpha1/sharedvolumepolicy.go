package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// ConditionNamespacesKnown is the only stage of a SharedVolumePolicy. It is True when every
// namespace that uses the grant has the UID in status.namespaces, and False for one pass
// after such a namespace was deleted and created again.
const ConditionNamespacesKnown = "NamespacesKnown"

// ReasonNamespaceRecreated is the reason of NamespacesKnown when the UID of a namespace
// has changed.
const ReasonNamespaceRecreated = "NamespaceRecreated"

// SharedVolumePolicyConditions are the condition types of the stages, in their order.
var SharedVolumePolicyConditions = []string{ConditionNamespacesKnown}

// SharedVolumePolicy grants namespaces the use of file systems. Administrators of the
// cluster create it. The grants of several policies add up. Access is denied unless a
// policy grants it. Removal of a grant stops new claims and sets Allowed of existing
// SharedVolumes to False; their claims stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedvolumepolicies,scope=Cluster,shortName=svp
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.namespaces.names`
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.spec.namespaces.selector`
// +kubebuilder:printcolumn:name="File Systems",type=string,JSONPath=`.spec.fileSystems[*].fileSystemID`
// +kubebuilder:printcolumn:name="Used By",type=string,JSONPath=`.status.namespaces[*].name`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SharedVolumePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the grant. A change applies to new claims; existing claims stay.
	// +required
	Spec SharedVolumePolicySpec `json:"spec"`

	// status is the observed state, at most a minute old.
	// +optional
	Status SharedVolumePolicyStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (p *SharedVolumePolicy) Common() *commonv1.Status { return &p.Status.Status }

// IsPaused is false: the operator changes nothing for a policy. A field paused could be taken for
// the withdrawal of the grant.
func (p *SharedVolumePolicy) IsPaused() bool { return false }

// SharedVolumePolicyStatus lists the namespaces that use the grant.
type SharedVolumePolicyStatus struct {
	commonv1.Status `json:",inline"`

	// namespaces with a SharedVolume that the policy allows, and namespaces in
	// spec.namespaces.names that had such a SharedVolume and were deleted. The first 256
	// by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Namespaces []GrantUser `json:"namespaces,omitempty"`
}

// GrantUser is a namespace that uses the grant.
type GrantUser struct {
	// name of the namespace.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the namespace. spec.namespaces.uids restricts a policy to UIDs.
	// +required
	// +kubebuilder:validation:MaxLength=36
	UID string `json:"uid"`

	// previousUID is the UID of a deleted namespace of this name that used the grant
	// before. Absent if there was none.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	PreviousUID string `json:"previousUID,omitempty"`
}

// SharedVolumePolicySpec grants file systems to namespaces.
type SharedVolumePolicySpec struct {
	// namespaces in which SharedVolumes may use the file systems.
	// +required
	Namespaces NamespaceSet `json:"namespaces"`

	// fileSystems that the namespaces may use.
	// +required
	// +listType=map
	// +listMapKey=fileSystemID
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	FileSystems []FileSystemGrant `json:"fileSystems"`
}

// NamespaceSet is the union of named and selected namespaces.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="must have names or a selector: an empty selector selects every namespace"
type NamespaceSet struct {
	// names of namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Names []string `json:"names,omitempty"`

	// selector selects namespaces by their labels, in addition to names. An empty selector
	// selects every namespace. Users who may label a namespace can obtain the grant for it.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// uids restrict the named and selected namespaces to these UIDs. A namespace that was
	// deleted and created again has another UID and then loses the grant. Default: any UID.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=36
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	UIDs []string `json:"uids,omitempty"`
}

// LabelSelector selects namespaces that have all labels and meet all expressions.
type LabelSelector struct {
	// matchLabels are labels and their values.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are conditions on labels.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is a condition on one label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == has(self.values)",message="must have values for In and NotIn, and none for Exists and DoesNotExist"
type LabelRequirement struct {
	// key of the label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([-a-z0-9.]{1,253}/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`

	// operator is the relation of the label to the values: In, NotIn, Exists or
	// DoesNotExist.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values of the label, for In and NotIn.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$`
	Values []string `json:"values,omitempty"`
}

// AccessPoints defines which access points of a file system are granted.
// +kubebuilder:validation:Enum=Listed;Any;Managed
type AccessPoints string

const (
	// AccessPointsListed grants the access points in accessPointIDs.
	AccessPointsListed AccessPoints = "Listed"
	// AccessPointsAny grants every access point of the file system, except those that the
	// operator manages for other namespaces.
	AccessPointsAny AccessPoints = "Any"
	// AccessPointsManaged lets the operator create an access point for each SharedVolume that
	// has no accessPointID, and grants no other access point.
	AccessPointsManaged AccessPoints = "Managed"
)

// FileSystemGrant grants access points of one file system.
//
// +kubebuilder:validation:XValidation:rule="(self.accessPoints == 'Listed') == has(self.accessPointIDs)",message="must have accessPointIDs if accessPoints is Listed, and none otherwise"
// +kubebuilder:validation:XValidation:rule="(self.accessPoints == 'Managed') == has(self.managed)",message="must have managed if accessPoints is Managed, and none otherwise"
type FileSystemGrant struct {
	// fileSystemID is the ID of the EFS file system.
	// +required
	FileSystemID FileSystemID `json:"fileSystemID"`

	// accessPoints is Listed, which grants the access points in accessPointIDs, or Any,
	// which grants every present and future access point of the file system except those that
	// the operator manages for other namespaces, or Managed: the operator creates an access
	// point for each SharedVolume without accessPointID. Managed needs spec.aws of the
	// SharedVolumeDriver. Default: Listed.
	// +optional
	// +default="Listed"
	AccessPoints AccessPoints `json:"accessPoints,omitempty"`

	// accessPointIDs are the IDs of the granted access points, for Listed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	AccessPointIDs []AccessPointID `json:"accessPointIDs,omitempty"`

	// managed describes the access points that the operator creates, for Managed.
	// +optional
	Managed *ManagedAccessPoints `json:"managed,omitempty"`

	// access is the highest access that is granted: ReadWrite or ReadOnly. Default:
	// ReadWrite.
	// +optional
	// +default="ReadWrite"
	Access Access `json:"access,omitempty"`
}

// ManagedAccessPoints describes the access points that the operator creates. A change applies
// to access points that are created afterwards.
type ManagedAccessPoints struct {
	// rootDirectory is the directory below which the access points have their directories:
	// <rootDirectory>/<namespace>-<hash>/<name of the SharedVolume>. The hash belongs to the
	// UID of the namespace, so that a recreated namespace finds no files of its namesake. EFS
	// creates missing directories. Default: /asterism.
	// +optional
	// +default="/asterism"
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9_-][A-Za-z0-9_.-]*){1,2}$`
	RootDirectory string `json:"rootDirectory,omitempty"`

	// posixUser is the owner of all files that pods create through the access points,
	// whatever user the pods run as. Default: a uid and a gid from 1000000000 to 1999999999,
	// the same for all SharedVolumes of a namespace.
	// +optional
	PosixUser *PosixUser `json:"posixUser,omitempty"`

	// permissions of a new directory, as an octal number. Default: 0700, which suffices,
	// because all pods have the same owner.
	// +optional
	// +default="0700"
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^[0-7]{3,4}$`
	Permissions string `json:"permissions,omitempty"`

	// maxPerNamespace is the number of managed access points of this file system that a
	// namespace may have. Default: 10.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxPerNamespace int32 `json:"maxPerNamespace,omitempty"`
}

// PosixUser is a user and a group. Neither may be root.
type PosixUser struct {
	// uid of the user.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	UID int64 `json:"uid"`

	// gid of the group.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967295
	GID int64 `json:"gid"`
}

// SharedVolumePolicyList is a list of SharedVolumePolicies.
//
// +kubebuilder:object:root=true
type SharedVolumePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []SharedVolumePolicy `json:"items"`
}
