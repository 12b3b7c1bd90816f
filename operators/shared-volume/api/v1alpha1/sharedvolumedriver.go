package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of a SharedVolumeDriver's stages, besides Ready and Stalled.
const (
	// ConditionDetected is True when CSIDriver efs.csi.aws.com exists, or managementState is
	// not Unmanaged.
	ConditionDetected = "Detected"
	// ConditionInstalled is True when every object of the driver except its DaemonSet is
	// applied, or the driver of another owner is used. It is False while managementState is
	// Removed. The rollout on the nodes does not change it.
	ConditionInstalled = "Installed"
	// ConditionRolledOut is True when every node that should run the driver runs its newest
	// revision. It is also True when the operator leaves the driver to another owner.
	ConditionRolledOut = "RolledOut"
	// ConditionVolumesOwned is True when no orphaned volume exists: see
	// status.orphanedVolumes.
	ConditionVolumesOwned = "VolumesOwned"
)

// Reasons of Installed.
const (
	// ReasonInUse is the reason while SharedVolumes prevent the removal of the driver. Ready of a
	// SharedFileSystem or SharedVolume also has it, while its file system or access point is used
	// and cannot be deleted.
	ReasonInUse = "InUse"
	// ReasonRemoved is the reason after the removal of the driver.
	ReasonRemoved = "Removed"
)

// ReasonOrphaned is the reason of VolumesOwned while bound volumes exist whose SharedVolume
// is gone.
const ReasonOrphaned = "Orphaned"

// SharedVolumeDriverName is the name of the only SharedVolumeDriver.
const SharedVolumeDriverName = "cluster"

// SharedVolumeDriverConditions are the condition types of the stages, in their order.
var SharedVolumeDriverConditions = []string{
	ConditionDetected,
	ConditionInstalled,
	ConditionRolledOut,
	ConditionVolumesOwned,
}

// ManagementState defines whether the operator manages the driver.
// +kubebuilder:validation:Enum=Managed;Unmanaged;Removed
type ManagementState string

const (
	// StateManaged installs the driver and corrects changes of its objects. A driver of
	// another owner is used and not changed.
	StateManaged ManagementState = "Managed"
	// StateUnmanaged uses the driver of another owner. The operator creates only the
	// StorageClass of SharedVolumes.
	StateUnmanaged ManagementState = "Unmanaged"
	// StateRemoved removes the installed objects when no SharedVolume exists.
	StateRemoved ManagementState = "Removed"
)

// SharedVolumeDriver is the CSI driver that mounts EFS file systems on the nodes. The only
// SharedVolumeDriver is named cluster; the operator creates it when the operator starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=sharedvolumedrivers,scope=Cluster,shortName=svd
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.managementState`
// +kubebuilder:printcolumn:name="Managed By",type=string,JSONPath=`.status.driver.managedBy`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.ready`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.nodes.desired`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 7 && self.metadata.name == 'cluster'",message="metadata.name must be cluster: a cluster has one driver"
type SharedVolumeDriver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +optional
	// +default={}
	Spec SharedVolumeDriverSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status SharedVolumeDriverStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (d *SharedVolumeDriver) Common() *commonv1.Status { return &d.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (d *SharedVolumeDriver) IsPaused() bool { return d.Spec.Paused }

// SharedVolumeDriverSpec is the desired state of the driver.
type SharedVolumeDriverSpec struct {
	commonv1.Pause `json:",inline"`

	// managementState is Managed, Unmanaged or Removed. Managed installs the driver, unless
	// another owner has installed one. Unmanaged creates only the StorageClass, and leaves
	// the driver to another owner. Removed removes the installed objects when no SharedVolume
	// exists. Default: Managed.
	// +optional
	// +default="Managed"
	ManagementState ManagementState `json:"managementState,omitempty"`

	// nodeSelector selects the nodes that run the driver, by label. Default: the worker
	// nodes on OpenShift, every Linux node elsewhere. A change rolls out the driver.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the driver run on tainted nodes. Default: all taints are tolerated,
	// because any pod may need a volume. A change rolls out the driver.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// aws lets the operator create access points for SharedVolumes, where a
	// SharedVolumePolicy has a grant with accessPoints Managed. Absent: the operator sends no
	// request to AWS.
	// +optional
	AWS *AWS `json:"aws,omitempty"`
}

// AWS describes the account that has the file systems. Without roleARN, the operator has the
// access key in the Secret asterism-shared-volume-aws of its own namespace.
type AWS struct {
	// region of the file systems, for example eu-central-1.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2,4}(-[a-z]+)+-[0-9]$`
	Region string `json:"region"`

	// roleARN is the IAM role that the operator assumes with a token of its ServiceAccount,
	// whose audience is sts.amazonaws.com. It needs an identity provider for the cluster in
	// IAM. Default: no role; the operator uses the access key.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$`
	RoleARN string `json:"roleARN,omitempty"`
}

// SharedVolumeDriverStatus is the observed state of the driver.
type SharedVolumeDriverStatus struct {
	commonv1.Status `json:",inline"`

	// installation is Installed when every object of the driver except its DaemonSet is
	// applied, or another owner has installed the driver. Otherwise it is Missing, and
	// SharedVolumes wait. The rollout of the pods does not change it.
	// +optional
	Installation Installation `json:"installation,omitempty"`

	// driver identifies the owner of the driver. Absent while the cluster has no driver.
	// +optional
	Driver *InstalledDriver `json:"driver,omitempty"`

	// nodes is the progress of the rollout on the nodes. Absent for the driver of another
	// owner.
	// +optional
	Nodes *NodeRollout `json:"nodes,omitempty"`

	// usedBy lists the SharedVolumes that prevent the removal of the driver. Absent unless
	// the driver is to be removed.
	// +optional
	UsedBy *DriverUsers `json:"usedBy,omitempty"`

	// orphanedVolumes are PersistentVolumes whose SharedVolume is gone, because its
	// finalizer was removed manually. Such a volume is deleted after its claim. The operator
	// looks for these volumes at least every ten minutes.
	// +optional
	OrphanedVolumes *OrphanedVolumes `json:"orphanedVolumes,omitempty"`
}

// OrphanedVolumes are PersistentVolumes without a SharedVolume.
type OrphanedVolumes struct {
	// names of the first ten volumes in alphabetical order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names"`

	// count is the number of all these volumes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// Installation is the presence of a driver in the cluster.
// +kubebuilder:validation:Enum=Installed;Missing
type Installation string

const (
	// DriverInstalled lets SharedVolumes be created.
	DriverInstalled Installation = "Installed"
	// DriverMissing makes new SharedVolumes wait.
	DriverMissing Installation = "Missing"
)

// DriverUsers are the SharedVolumes that need the driver.
type DriverUsers struct {
	// sharedVolumes are the first ten SharedVolumes in alphabetical order, as
	// namespace/name.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	SharedVolumes []string `json:"sharedVolumes"`

	// count is the number of all these SharedVolumes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// InstalledDriver is the driver that the cluster has.
type InstalledDriver struct {
	// managedBy is asterism, or the owner that a label, an annotation or a field manager of
	// the CSIDriver names, or unknown.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ManagedBy string `json:"managedBy"`

	// image of the driver's pods. Absent for the driver of another owner.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// NodeRollout counts nodes.
type NodeRollout struct {
	// desired is the number of nodes that should run the driver.
	// +required
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`

	// updated is the number of nodes that run the newest revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Updated int32 `json:"updated"`

	// ready is the number of nodes on which the driver is ready, in any revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
}

// SharedVolumeDriverList is a list of SharedVolumeDrivers.
//
// +kubebuilder:object:root=true
type SharedVolumeDriverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []SharedVolumeDriver `json:"items"`
}
