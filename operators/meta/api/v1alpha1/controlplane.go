package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// Condition types of the stages, besides Ready, Stalled and Available.
const (
	// ConditionInputsReady is True when the metadata Secret is there and has its key.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionNovaReady is True when the Nova is ready.
	ConditionNovaReady = "NovaReady"
	// ConditionSharedVolumesReady is True when every SharedVolume is ready, and
	// absent where none is wanted.
	ConditionSharedVolumesReady = "SharedVolumesReady"
)

// ControlPlaneConditions are the condition types of the stages, in their order.
var ControlPlaneConditions = []string{
	ConditionInputsReady,
	ConditionNovaReady,
	ConditionSharedVolumesReady,
}

// ControlPlane is the one resource from which a Nova of the same name, the
// metadata Secret and SharedVolumes are made.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=controlplanes,scope=Namespaced,shortName=cplane,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Cells",type=integer,JSONPath=`.status.nova.readyCells`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.nova.desiredCells`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 24 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 24 lower-case letters, digits and '-', begin with a letter and not end with '-': cells, pods and databases are named after it"
type ControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec ControlPlaneSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status ControlPlaneStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (c *ControlPlane) Common() *commonv1.Status { return &c.Status.Status }

// ControlPlaneSpec is what is wanted of a ControlPlane.
//
// +kubebuilder:validation:XValidation:rule="has(self.database.adminSecretRef) || self.nova.cells.all(cell, has(cell.database))",message="every cell must have a database of its own where spec.database gives Secrets: those hold the API database and cell0 only"
// +kubebuilder:validation:XValidation:rule="has(self.messageBus.adminSecretRef) || self.nova.cells.all(cell, has(cell.messageBus))",message="every cell must have a messageBus of its own where spec.messageBus gives a Secret: that holds the bus of the global services only"
// +kubebuilder:validation:XValidation:rule="!has(self.database.apiDatabaseSecretRef) || !has(self.database.cell0DatabaseSecretRef) || self.nova.cells.all(cell, !has(cell.database) || !has(cell.database.connectionSecretRef) || !(cell.database.connectionSecretRef.name in [self.database.apiDatabaseSecretRef.name, self.database.cell0DatabaseSecretRef.name]))",message="must have another database.connectionSecretRef for a cell than spec.database.apiDatabaseSecretRef and cell0DatabaseSecretRef: a cell cannot share a database with the API or cell0"
// +kubebuilder:validation:XValidation:rule="!has(self.messageBus.connectionSecretRef) || self.nova.cells.all(cell, !has(cell.messageBus) || !has(cell.messageBus.connectionSecretRef) || cell.messageBus.connectionSecretRef.name != self.messageBus.connectionSecretRef.name)",message="must have another messageBus.connectionSecretRef for a cell than spec.messageBus.connectionSecretRef: a cell cannot share a vhost with the global services"
// +kubebuilder:validation:XValidation:rule="(has(self.namePrefix) ? self.namePrefix : '-') == (has(oldSelf.namePrefix) ? oldSelf.namePrefix : '-')",message="must not change namePrefix: databases, vhosts and accounts are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.namePrefix) || oldSelf.hasValue() || has(self.database.adminSecretRef) || has(self.messageBus.adminSecretRef) || has(self.identity.adminSecretRef) || self.nova.cells.exists(cell, has(cell.database) && has(cell.database.adminSecretRef) || has(cell.messageBus) && has(cell.messageBus.adminSecretRef))",optionalOldSelf=true,message="must not have namePrefix where connection Secrets are given for everything: nothing is registered that it could name"
type ControlPlaneSpec struct {
	// containerImage runs every service that does not have its own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage"`

	// namePrefix begins the names of databases, vhosts and accounts that are
	// registered: <namePrefix>_api, <namePrefix>_cell0, <namePrefix>_nova,
	// <namePrefix>_<cell>. It cannot be changed. Default: the name of the ControlPlane.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	NamePrefix string `json:"namePrefix,omitempty"`

	// database is where the API database and cell0 are, and every cell that does
	// not have its own.
	// +required
	Database novav1.Database `json:"database"`

	// messageBus is the bus of the global services, and of every cell that does
	// not have its own.
	// +required
	MessageBus novav1.MessageBus `json:"messageBus"`

	// identity is the account at Keystone and the region of the endpoints.
	// +required
	Identity novav1.Identity `json:"identity"`

	// metadataSecretRef names the Secret whose key sharedSecret Neutron's metadata
	// agent signs its requests with. Give the Secret of a Neutron that is there
	// already. A change restarts the metadata service. Default: a Secret
	// <name>-metadata is generated.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	// nova describes the compute services and cells.
	// +required
	Nova novav1.NovaTemplate `json:"nova"`

	// sharedVolumes are made in the namespace of the ControlPlane, each with a
	// claim that pods on any node can mount. One that is taken out of the list is
	// deleted as soon as no pod uses it; its data stay in the file system.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SharedVolumes []SharedVolumeTemplate `json:"sharedVolumes,omitempty"`
}

// SharedVolumeTemplate is a SharedVolume of a ControlPlane. Its fields are those
// of a SharedVolume.
type SharedVolumeTemplate struct {
	// name of the SharedVolume, and of its claim unless claimName says otherwise.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	storagev1.SharedVolumeSpec `json:",inline"`
}

// ControlPlaneStatus is what was observed of a ControlPlane.
type ControlPlaneStatus struct {
	commonv1.Status `json:",inline"`

	// nova says how the Nova is.
	// +optional
	Nova *NovaStatus `json:"nova,omitempty"`

	// sharedVolumes says how each of the SharedVolumes is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SharedVolumes []SharedVolumeStatus `json:"sharedVolumes,omitempty"`
}

// SharedVolumeStatus says how a SharedVolume of a ControlPlane is.
type SharedVolumeStatus struct {
	// name of the SharedVolume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// ready is the SharedVolume's Ready condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready"`

	// message says what it waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// NovaStatus says how the Nova of a ControlPlane is.
type NovaStatus struct {
	// name of the Nova.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	Name string `json:"name"`

	// ready is the Nova's Ready condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready"`

	// readyCells is the number of cells that are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyCells int32 `json:"readyCells"`

	// desiredCells is the number of cells in the spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DesiredCells int32 `json:"desiredCells"`

	// cells says how each cell is, as in the status of the Nova.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Cells []novav1.CellStatus `json:"cells,omitempty"`

	// endpoints are the addresses of the compute API, as in the catalog.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// ControlPlaneList is a list of ControlPlanes.
//
// +kubebuilder:object:root=true
type ControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ControlPlane `json:"items"`
}
