package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of Nova's stages, besides Ready, Stalled and Available; the
// first four are NovaCell's too.
const (
	// ConditionInputsReady is True when every Secret and Service that the spec
	// names exists and has the keys that are needed.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionCredentialsReady is True when the passwords of all accounts are stored.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionDatabaseReady is True when databases and accounts are registered
	// and their connection Secrets exist.
	ConditionDatabaseReady = "DatabaseReady"
	// ConditionMessageBusReady is True when vhost and user are registered and the
	// connection Secret exists.
	ConditionMessageBusReady = "MessageBusReady"
	// ConditionIdentityReady is True when the user nova is registered at Keystone.
	ConditionIdentityReady = "IdentityReady"
	// ConditionConductorReady is True when the superconductor (NovaCell: the
	// cell's conductor) is ready.
	ConditionConductorReady = "ConductorReady"
	// ConditionCellsReady is True when every cell of the list is ready.
	ConditionCellsReady = "CellsReady"
	// ConditionCell0Mapped is True when cell0 is mapped in the API database.
	ConditionCell0Mapped = "Cell0Mapped"
	// ConditionSchedulerReady is True when the scheduler is ready.
	ConditionSchedulerReady = "SchedulerReady"
	// ConditionMetadataReady is True when the metadata service is ready.
	ConditionMetadataReady = "MetadataReady"
	// ConditionAPIReady is True when the compute API is ready.
	ConditionAPIReady = "APIReady"
	// ConditionEndpointsReady is True when the catalog has the compute service and
	// its endpoints.
	ConditionEndpointsReady = "EndpointsReady"
)

// NovaConditions are the condition types of Nova's stages, in their order.
var NovaConditions = []string{
	ConditionInputsReady,
	ConditionCredentialsReady,
	ConditionDatabaseReady,
	ConditionMessageBusReady,
	ConditionIdentityReady,
	ConditionConductorReady,
	ConditionCellsReady,
	ConditionCell0Mapped,
	ConditionSchedulerReady,
	ConditionMetadataReady,
	ConditionAPIReady,
	ConditionEndpointsReady,
}

// MetadataMode says how many metadata services there are. Only Global is
// accepted by this version.
// +kubebuilder:validation:Enum=Global
type MetadataMode string

// MetadataGlobal is one metadata service that answers for every cell.
const MetadataGlobal MetadataMode = "Global"

// Nova is a whole compute control plane: databases, accounts, catalog entries,
// superconductor, scheduler, metadata, API and cells.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=novas,scope=Namespaced,shortName=nv,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Cells",type=integer,JSONPath=`.status.readyCells`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredCells`
// +kubebuilder:printcolumn:name="Public",type=string,JSONPath=`.status.endpoints[?(@.interface=="Public")].url`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 24 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 24 lower-case letters, digits and '-', begin with a letter and not end with '-': cells, pods and databases are named after it"
type Nova struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec NovaSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status NovaStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (n *Nova) Common() *commonv1.Status { return &n.Status.Status }

// NovaSpec is what is wanted of a Nova.
//
// +kubebuilder:validation:XValidation:rule="has(self.database.adminSecretRef) || self.cells.all(cell, has(cell.database))",message="every cell must have a database of its own where spec.database gives Secrets: those hold the API database and cell0 only"
// +kubebuilder:validation:XValidation:rule="has(self.messageBus.adminSecretRef) || self.cells.all(cell, has(cell.messageBus))",message="every cell must have a messageBus of its own where spec.messageBus gives a Secret: that holds the bus of the global services only"
// +kubebuilder:validation:XValidation:rule="!has(self.database.apiDatabaseSecretRef) || !has(self.database.cell0DatabaseSecretRef) || self.cells.all(cell, !has(cell.database) || !has(cell.database.connectionSecretRef) || !(cell.database.connectionSecretRef.name in [self.database.apiDatabaseSecretRef.name, self.database.cell0DatabaseSecretRef.name]))",message="must have another database.connectionSecretRef for a cell than spec.database.apiDatabaseSecretRef and cell0DatabaseSecretRef: a cell cannot share a database with the API or cell0"
// +kubebuilder:validation:XValidation:rule="!has(self.messageBus.connectionSecretRef) || self.cells.all(cell, !has(cell.messageBus) || !has(cell.messageBus.connectionSecretRef) || cell.messageBus.connectionSecretRef.name != self.messageBus.connectionSecretRef.name)",message="must have another messageBus.connectionSecretRef for a cell than spec.messageBus.connectionSecretRef: a cell cannot share a vhost with the global services"
// +kubebuilder:validation:XValidation:rule="(has(self.namePrefix) ? self.namePrefix : '-') == (has(oldSelf.namePrefix) ? oldSelf.namePrefix : '-')",message="must not change namePrefix: databases, vhosts and accounts are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.namePrefix) || oldSelf.hasValue() || has(self.database.adminSecretRef) || has(self.messageBus.adminSecretRef) || has(self.identity.adminSecretRef) || self.cells.exists(cell, has(cell.database) && has(cell.database.adminSecretRef) || has(cell.messageBus) && has(cell.messageBus.adminSecretRef))",optionalOldSelf=true,message="must not have namePrefix where connection Secrets are given for everything: nothing is registered that it could name"
type NovaSpec struct {
	// containerImage runs every service that does not have its own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage"`

	// namePrefix begins the names of databases, vhosts and accounts that are
	// registered: <namePrefix>_api, <namePrefix>_cell0, <namePrefix>_nova,
	// <namePrefix>_<cell>. It cannot be changed. Default: the name of the Nova.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	NamePrefix string `json:"namePrefix,omitempty"`

	// database is where the API database and cell0 are, and every cell that does
	// not have its own.
	// +required
	Database Database `json:"database"`

	// messageBus is the bus of the global services, and of every cell that does
	// not have its own.
	// +required
	MessageBus MessageBus `json:"messageBus"`

	// identity is the account at Keystone and the region of the endpoints.
	// +required
	Identity Identity `json:"identity"`

	// metadataSecretRef names the Secret whose key sharedSecret Neutron's metadata
	// agent signs its requests with. Give the Secret of a Neutron that is there
	// already. A change restarts the metadata service. Default: a Secret
	// <name>-metadata is generated.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	NovaTemplate `json:",inline"`
}

// NovaTemplate is what a Nova and a parent of it say alike: the services and
// the cells.
type NovaTemplate struct {
	// deletionPolicy is Retain, or Delete to drop the databases when the Nova is
	// deleted. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// pod is the default of every service's pod.
	// +optional
	Pod commonv1.PodSettings `json:"pod,omitzero"`

	// superconductor is the conductor of the API database and cell0.
	// +optional
	Superconductor commonv1.ServiceTemplate `json:"superconductor,omitzero"`

	// scheduler chooses a host for every server.
	// +optional
	Scheduler commonv1.ServiceTemplate `json:"scheduler,omitzero"`

	// metadata is the service from which servers learn about themselves.
	// +optional
	// +kubebuilder:default={}
	Metadata MetadataTemplate `json:"metadata,omitzero"`

	// api is the compute API.
	// +optional
	// +kubebuilder:default={}
	API APITemplate `json:"api,omitzero"`

	// cells lists the cells; no cell is made that is not listed. One that is
	// listed cannot be taken out.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(old, self.exists(cell, cell.name == old.name))",message="must keep every cell: taking one out of the list is not supported by this version"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.database) || !has(a.database.connectionSecretRef) || self.exists_one(b, has(b.database) && has(b.database.connectionSecretRef) && b.database.connectionSecretRef.name == a.database.connectionSecretRef.name))",message="must have another database.connectionSecretRef for every cell: cells cannot share a database"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.messageBus) || !has(a.messageBus.connectionSecretRef) || self.exists_one(b, has(b.messageBus) && has(b.messageBus.connectionSecretRef) && b.messageBus.connectionSecretRef.name == a.messageBus.connectionSecretRef.name))",message="must have another messageBus.connectionSecretRef for every cell: cells cannot share a vhost"
	Cells []Cell `json:"cells"`
}

// MetadataTemplate is the metadata service inside a Nova.
type MetadataTemplate struct {
	commonv1.ServiceTemplate `json:",inline"`

	// mode is Global: one metadata service answers for every cell. Default: Global.
	// +optional
	// +kubebuilder:default=Global
	Mode MetadataMode `json:"mode,omitempty"`
}

// APITemplate is the compute API inside a Nova.
type APITemplate struct {
	commonv1.ServiceTemplate `json:",inline"`

	// exposure says how clients outside of the cluster reach the API. Default: type
	// Automatic.
	// +optional
	// +kubebuilder:default={type: Automatic}
	Exposure commonv1.Exposure `json:"exposure,omitzero"`

	// endpoints replace, by interface, the addresses that are registered in the
	// catalog. Default: what the API is reached at.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// NovaStatus is what was observed of a Nova.
type NovaStatus struct {
	commonv1.Status `json:",inline"`

	// endpoints are the addresses of the compute API, as in the catalog.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`

	// readyCells is the number of cells that are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyCells int32 `json:"readyCells"`

	// desiredCells is the number of cells in the spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DesiredCells int32 `json:"desiredCells"`

	// cells says how each cell of the list is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Cells []CellStatus `json:"cells,omitempty"`
}

// CellStatus says how one cell is.
type CellStatus struct {
	// name of the cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name"`

	// uuid under which the cell is mapped.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// ready is the Ready condition of the NovaCell: True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready"`

	// reason of the NovaCell's Ready condition, while it is not True.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message of the NovaCell's Ready condition, while it is not True.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// hosts counts the compute hosts that the cell knows; absent: not counted yet.
	// +optional
	Hosts *CellHosts `json:"hosts,omitempty"`

	// computeConfigSecretRef names the Secret with everything that a compute host
	// of this cell needs; absent: not made yet.
	// +optional
	ComputeConfigSecretRef *commonv1.SecretReference `json:"computeConfigSecretRef,omitempty"`
}

// NovaList is a list of Novas.
//
// +kubebuilder:object:root=true
type NovaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Nova `json:"items"`
}
