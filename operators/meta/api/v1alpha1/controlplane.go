package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// Condition types of the stages, in addition to Ready, Stalled and Available.
const (
	// ConditionInputsReady is True when the Secret of metadataSecretRef exists with key
	// sharedSecret, or, without metadataSecretRef, Secret <name>-metadata is generated.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionNovaReady is True when the Nova is ready.
	ConditionNovaReady = "NovaReady"
	// ConditionSharedVolumesReady is True when every SharedVolume of the spec is ready. It
	// is absent if the spec has no SharedVolumes.
	ConditionSharedVolumesReady = "SharedVolumesReady"
)

// ControlPlaneConditions are the condition types of the stages, in order.
var ControlPlaneConditions = []string{
	ConditionInputsReady,
	ConditionNovaReady,
	ConditionSharedVolumesReady,
}

// ControlPlane describes a whole control plane. The operator creates from it a Nova of the
// same name, the metadata Secret and SharedVolumes.
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

	// spec is the desired state.
	// +required
	Spec ControlPlaneSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status ControlPlaneStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (c *ControlPlane) Common() *commonv1.Status { return &c.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (c *ControlPlane) IsPaused() bool { return c.Spec.Paused }

// ControlPlaneSpec is the desired state of a ControlPlane.
//
// +kubebuilder:validation:XValidation:rule="has(self.database.adminSecretRef) || self.nova.cells.all(cell, has(cell.database))",message="every cell must have a database of its own if spec.database names connection Secrets: these are for the API database and cell0 only"
// +kubebuilder:validation:XValidation:rule="has(self.messageBus.adminSecretRef) || self.nova.cells.all(cell, has(cell.messageBus))",message="every cell must have a messageBus of its own if spec.messageBus names a connection Secret: it is for the global services only"
// +kubebuilder:validation:XValidation:rule="!has(self.database.apiDatabaseSecretRef) || !has(self.database.cell0DatabaseSecretRef) || self.nova.cells.all(cell, !has(cell.database) || !has(cell.database.connectionSecretRef) || !(cell.database.connectionSecretRef.name in [self.database.apiDatabaseSecretRef.name, self.database.cell0DatabaseSecretRef.name]))",message="must not use the Secret of spec.database.apiDatabaseSecretRef or cell0DatabaseSecretRef for a cell: a cell cannot share a database with the API or cell0"
// +kubebuilder:validation:XValidation:rule="!has(self.messageBus.connectionSecretRef) || self.nova.cells.all(cell, !has(cell.messageBus) || !has(cell.messageBus.connectionSecretRef) || cell.messageBus.connectionSecretRef.name != self.messageBus.connectionSecretRef.name)",message="must not use the Secret of spec.messageBus.connectionSecretRef for a cell: a cell cannot share a vhost with the global services"
// +kubebuilder:validation:XValidation:rule="(has(self.namePrefix) ? self.namePrefix : '-') == (has(oldSelf.namePrefix) ? oldSelf.namePrefix : '-')",message="must not change namePrefix: databases, vhosts and accounts are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.namePrefix) || oldSelf.hasValue() || has(self.database.adminSecretRef) || has(self.messageBus.adminSecretRef) || has(self.identity.adminSecretRef) || self.nova.cells.exists(cell, has(cell.database) && has(cell.database.adminSecretRef) || has(cell.messageBus) && has(cell.messageBus.adminSecretRef))",optionalOldSelf=true,message="must not have namePrefix if every connection has a connectionSecretRef: the operator then registers nothing that the prefix would name"
type ControlPlaneSpec struct {
	commonv1.Pause `json:",inline"`

	// containerImage is the image of every service that has no containerImage of its own.
	// Default: the default image of the operator of Nova, if this operator has one. A change
	// first synchronizes the schemas of the databases, then restarts the services.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	// namePrefix is the beginning of the names of the databases, vhosts and accounts that
	// the operator registers: <namePrefix>_api, <namePrefix>_cell0, <namePrefix>_nova,
	// <namePrefix>_<cell>. Default: the name of the ControlPlane. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	NamePrefix string `json:"namePrefix,omitempty"`

	// database is the server of the API database, of cell0, and of every cell without a
	// database of its own.
	// +required
	Database novav1.Database `json:"database"`

	// messageBus is the RabbitMQ of the global services, and of every cell without a
	// messageBus of its own.
	// +required
	MessageBus novav1.MessageBus `json:"messageBus"`

	// identity is the account of the services at Keystone, and the region of the endpoints.
	// +required
	Identity novav1.Identity `json:"identity"`

	// metadataSecretRef names the Secret with key sharedSecret, with which Neutron's
	// metadata agent signs its requests. Set it if Neutron has such a secret already.
	// Default: the operator generates Secret <name>-metadata. A change restarts the
	// metadata service.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	// nova has the settings of the compute services and the cells.
	// +required
	Nova novav1.NovaTemplate `json:"nova"`

	// sharedVolumes lists the SharedVolumes that the operator creates in the namespace of
	// the ControlPlane, at most 32. Each has a claim that pods on any node can mount. A
	// SharedVolume that is removed from the list is deleted when no pod uses it; its files
	// stay in the file system.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SharedVolumes []SharedVolumeTemplate `json:"sharedVolumes,omitempty"`
}

// SharedVolumeTemplate is a SharedVolume of a ControlPlane: a name, and the spec of a
// SharedVolume.
type SharedVolumeTemplate struct {
	// name of the SharedVolume, and of its claim unless claimName is set.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	storagev1.SharedVolumeSpec `json:",inline"`
}

// ControlPlaneStatus is the observed state of a ControlPlane.
type ControlPlaneStatus struct {
	commonv1.Status `json:",inline"`

	// nova has the state of the Nova.
	// +optional
	Nova *NovaStatus `json:"nova,omitempty"`

	// sharedVolumes has the state of each SharedVolume in the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SharedVolumes []SharedVolumeStatus `json:"sharedVolumes,omitempty"`
}

// SharedVolumeStatus is the state of a SharedVolume of a ControlPlane.
type SharedVolumeStatus struct {
	// name of the SharedVolume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// ready is the status of the SharedVolume's Ready condition: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready"`

	// message of the SharedVolume's Ready condition.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// NovaStatus is the state of the Nova of a ControlPlane.
type NovaStatus struct {
	// name of the Nova.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	Name string `json:"name"`

	// ready is the status of the Nova's Ready condition: True, False or Unknown.
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

	// metadataAgent is the configuration of the metadata agents that use the global metadata
	// service. It is absent if the Nova has none.
	// +optional
	MetadataAgent *novav1.MetadataAgent `json:"metadataAgent,omitempty"`

	// cells has the state of each cell, as in the status of the Nova.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
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
