package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of a SharedVolumeDriver's stages, besides Ready and Stalled.
const (
	// ConditionDetected is True when it is known whose driver the cluster has.
	ConditionDetected = "Detected"
	// ConditionInstalled is True when the cluster has the driver: SharedVolumes
	// wait for it. It does not follow the rollout on the nodes.
	ConditionInstalled = "Installed"
	// ConditionRolledOut is True when every node that should run the driver does.
	ConditionRolledOut = "RolledOut"
	// ConditionVolumesOwned is True when every volume of a SharedVolume has its
	// SharedVolume.
	ConditionVolumesOwned = "VolumesOwned"
)

// Reasons of Installed.
const (
	// ReasonInUse is given while SharedVolumes stand in the way of a removal.
	ReasonInUse = "InUse"
	// ReasonRemoved is given when the driver was removed as asked.
	ReasonRemoved = "Removed"
)

// ReasonOrphaned is the reason of VolumesOwned for bound volumes whose SharedVolume is
// gone.
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

// ManagementState says who looks after the driver.
// +kubebuilder:validation:Enum=Managed;Unmanaged;Removed
type ManagementState string

const (
	// StateManaged installs the driver and keeps it as it should be, unless
	// somebody else has installed one: that is used and left alone.
	StateManaged ManagementState = "Managed"
	// StateUnmanaged uses what is there. Nothing of the driver is installed, changed or
	// removed; the StorageClass of SharedVolumes is made.
	StateUnmanaged ManagementState = "Unmanaged"
	// StateRemoved removes what was installed, once no SharedVolume exists.
	StateRemoved ManagementState = "Removed"
)

// SharedVolumeDriver is the CSI driver that mounts EFS file systems on the
// nodes. There is one, named cluster; the operator makes it when it starts.
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

	// spec is what is wanted.
	// +optional
	// +default={}
	Spec SharedVolumeDriverSpec `json:"spec,omitzero"`

	// status is what was observed.
	// +optional
	Status SharedVolumeDriverStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (d *SharedVolumeDriver) Common() *commonv1.Status { return &d.Status.Status }

// SharedVolumeDriverSpec is what is wanted of the driver.
type SharedVolumeDriverSpec struct {
	// managementState is Managed: the driver is installed, unless somebody else
	// has done so. Unmanaged: the driver is somebody else's business; nothing but a
	// StorageClass is made, and nothing of the driver changed or removed. Removed:
	// what was installed is removed, once no SharedVolume exists. Default: Managed.
	// +optional
	// +default="Managed"
	ManagementState ManagementState `json:"managementState,omitempty"`

	// nodeSelector chooses the nodes that run the driver, by label. Default: the
	// worker nodes on OpenShift, every Linux node elsewhere.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the driver run on tainted nodes. Default: all taints, since
	// a pod that tolerates one may need a volume there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// SharedVolumeDriverStatus is what was observed of the driver.
type SharedVolumeDriverStatus struct {
	commonv1.Status `json:",inline"`

	// installation is Installed once SharedVolumes can rely on the driver:
	// everything but its pods was applied, or another owner has installed the
	// driver. A rollout of the pods does not change it. Otherwise it is Missing.
	// +optional
	Installation Installation `json:"installation,omitempty"`

	// driver says whose it is.
	// +optional
	Driver *InstalledDriver `json:"driver,omitempty"`

	// nodes says how far the rollout of our driver is.
	// +optional
	Nodes *NodeRollout `json:"nodes,omitempty"`

	// usedBy is who has to go before the driver can be removed, while it is to be.
	// +optional
	UsedBy *DriverUsers `json:"usedBy,omitempty"`

	// orphanedVolumes are bound PersistentVolumes whose SharedVolume is gone, because
	// somebody has taken its finalizer away. Such a volume is deleted when its claim is.
	// This is observed every ten minutes.
	// +optional
	OrphanedVolumes *OrphanedVolumes `json:"orphanedVolumes,omitempty"`
}

// OrphanedVolumes are PersistentVolumes without a SharedVolume.
type OrphanedVolumes struct {
	// names are the first ten.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names"`

	// count of all of them.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// Installation is the presence of a driver on the cluster.
// +kubebuilder:validation:Enum=Installed;Missing
type Installation string

const (
	// DriverInstalled lets SharedVolumes be created.
	DriverInstalled Installation = "Installed"
	// DriverMissing holds new SharedVolumes.
	DriverMissing Installation = "Missing"
)

// DriverUsers are SharedVolumes, which need the driver.
type DriverUsers struct {
	// sharedVolumes are the first ten, as namespace/name.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	SharedVolumes []string `json:"sharedVolumes"`

	// count of all of them.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// InstalledDriver is the driver that the cluster has.
type InstalledDriver struct {
	// managedBy is asterism, or what is known of whoever installed it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ManagedBy string `json:"managedBy"`

	// image that the pods of our driver are to run.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// NodeRollout counts nodes.
type NodeRollout struct {
	// desired is how many nodes should run the driver.
	// +required
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`

	// updated is how many run the newest revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Updated int32 `json:"updated"`

	// ready is how many run it, in any revision, and are ready.
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
