package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Condition types of the stages of a Nova, in addition to Ready, Stalled and Available. A
// NovaCell also has the first four, ConductorReady and MetadataReady.
const (
	// ConditionInputsReady is True when every Secret and Service that the spec names
	// exists, with the required keys, and the given connection Secrets are valid.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionCredentialsReady is True when the Secret with the passwords of the accounts
	// exists, and for a Nova also the metadata Secret.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionDatabaseReady is True when the databases and their accounts are registered
	// and have connection Secrets. For a given connection Secret nothing is registered.
	ConditionDatabaseReady = "DatabaseReady"
	// ConditionMessageBusReady is True when the vhost and its user are registered and have
	// a connection Secret. For a given connection Secret nothing is registered.
	ConditionMessageBusReady = "MessageBusReady"
	// ConditionIdentityReady is True when Nova's user is registered at Keystone. For a given
	// connection Secret nothing is registered.
	ConditionIdentityReady = "IdentityReady"
	// ConditionReleaseKnown is True when a Job has read the release of Nova in containerImage.
	ConditionReleaseKnown = "ReleaseKnown"
	// ConditionUpgraded is True when no upgrade to another release runs or is refused. Its reason
	// is the phase of the upgrade.
	ConditionUpgraded = "Upgraded"
	// ConditionConductorReady is True when the NovaConductor of the superconductor (of a
	// NovaCell: the cell's conductor) is ready.
	ConditionConductorReady = "ConductorReady"
	// ConditionCellsReady is True when the NovaCell of every cell is ready.
	ConditionCellsReady = "CellsReady"
	// ConditionCell0Mapped is True when cell0 is mapped in the API database.
	ConditionCell0Mapped = "Cell0Mapped"
	// ConditionUpkeepDone is True when the last archive and purge of deleted rows has succeeded, or
	// none is wanted. Ready does not depend on it.
	ConditionUpkeepDone = "UpkeepDone"
	// ConditionSchedulerReady is True when the NovaScheduler is ready.
	ConditionSchedulerReady = "SchedulerReady"
	// ConditionMetadataReady is True when the NovaMetadata is ready, or is not wanted and
	// deleted.
	ConditionMetadataReady = "MetadataReady"
	// ConditionAPIReady is True when the NovaAPI is ready.
	ConditionAPIReady = "APIReady"
	// ConditionEndpointsReady is True when the addresses of the compute API are known and,
	// unless identity.connectionSecretRef is set, registered in the catalog.
	ConditionEndpointsReady = "EndpointsReady"
)

// NovaConditions are the condition types of the stages of a Nova, in order.
var NovaConditions = []string{
	ConditionInputsReady,
	ConditionCredentialsReady,
	ConditionDatabaseReady,
	ConditionMessageBusReady,
	ConditionIdentityReady,
	ConditionReleaseKnown,
	ConditionUpgraded,
	ConditionConductorReady,
	ConditionCellsReady,
	ConditionCell0Mapped,
	ConditionUpkeepDone,
	ConditionSchedulerReady,
	ConditionMetadataReady,
	ConditionAPIReady,
	ConditionEndpointsReady,
}

// MetadataMode decides which metadata services a Nova has.
// +kubebuilder:validation:Enum=Global;PerCell;GlobalAndPerCell
type MetadataMode string

const (
	// MetadataGlobal is one metadata service that answers for every cell.
	MetadataGlobal MetadataMode = "Global"
	// MetadataPerCell is one metadata service for each cell.
	MetadataPerCell MetadataMode = "PerCell"
	// MetadataGlobalAndPerCell is both, while the metadata agents of Neutron change from one
	// to the other.
	MetadataGlobalAndPerCell MetadataMode = "GlobalAndPerCell"
)

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
// +kubebuilder:printcolumn:name="Release",type=string,JSONPath=`.status.release`,priority=1
// +kubebuilder:printcolumn:name="Upgrade",type=string,JSONPath=`.status.upgrade.phase`,priority=1
// +kubebuilder:printcolumn:name="Public",type=string,JSONPath=`.status.endpoints[?(@.interface=="Public")].url`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 24 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 24 lower-case letters, digits and '-', begin with a letter and not end with '-': cells, pods and databases are named after it"
type Nova struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (n *Nova) Common() *commonv1.Status { return &n.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (n *Nova) IsPaused() bool { return n.Spec.Paused }

// NovaSpec is the desired state of a Nova.
//
// +kubebuilder:validation:XValidation:rule="has(self.database.adminSecretRef) || self.cells.all(cell, has(cell.database))",message="every cell must have a database of its own if spec.database names connection Secrets: these are for the API database and cell0 only"
// +kubebuilder:validation:XValidation:rule="has(self.messageBus.adminSecretRef) || self.cells.all(cell, has(cell.messageBus))",message="every cell must have a messageBus of its own if spec.messageBus names a connection Secret: it is for the global services only"
// +kubebuilder:validation:XValidation:rule="!has(self.database.apiDatabaseSecretRef) || !has(self.database.cell0DatabaseSecretRef) || self.cells.all(cell, !has(cell.database) || !has(cell.database.connectionSecretRef) || !(cell.database.connectionSecretRef.name in [self.database.apiDatabaseSecretRef.name, self.database.cell0DatabaseSecretRef.name]))",message="must not use the Secret of spec.database.apiDatabaseSecretRef or cell0DatabaseSecretRef for a cell: a cell cannot share a database with the API or cell0"
// +kubebuilder:validation:XValidation:rule="!has(self.messageBus.connectionSecretRef) || self.cells.all(cell, !has(cell.messageBus) || !has(cell.messageBus.connectionSecretRef) || cell.messageBus.connectionSecretRef.name != self.messageBus.connectionSecretRef.name)",message="must not use the Secret of spec.messageBus.connectionSecretRef for a cell: a cell cannot share a vhost with the global services"
// +kubebuilder:validation:XValidation:rule="(has(self.namePrefix) ? self.namePrefix : '-') == (has(oldSelf.namePrefix) ? oldSelf.namePrefix : '-')",message="must not change namePrefix: databases, vhosts and accounts are named after it"
// +kubebuilder:validation:XValidation:rule="!has(self.namePrefix) || oldSelf.hasValue() || has(self.database.adminSecretRef) || has(self.messageBus.adminSecretRef) || has(self.identity.adminSecretRef) || self.cells.exists(cell, has(cell.database) && has(cell.database.adminSecretRef) || has(cell.messageBus) && has(cell.messageBus.adminSecretRef))",optionalOldSelf=true,message="must not have namePrefix if every connection has a connectionSecretRef: the operator then registers nothing that the prefix would name"
type NovaSpec struct {
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
	// <namePrefix>_<cell>. Default: the name of the Nova. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	NamePrefix string `json:"namePrefix,omitempty"`

	// database is the server of the API database, of cell0, and of every cell without a
	// database of its own.
	// +required
	Database Database `json:"database"`

	// messageBus is the RabbitMQ of the global services, and of every cell without a
	// messageBus of its own.
	// +required
	MessageBus MessageBus `json:"messageBus"`

	// identity is the account of the services at Keystone, and the region of the endpoints.
	// +required
	Identity Identity `json:"identity"`

	// metadataSecretRef names the Secret with key sharedSecret, with which Neutron's
	// metadata agent signs its requests. Set it if Neutron has such a secret already.
	// Default: the operator generates Secret <name>-metadata. A change restarts the
	// metadata service.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	NovaTemplate `json:",inline"`
}

// NovaTemplate has the fields that a Nova and the parent of a Nova share: the services and
// the cells.
//
// +kubebuilder:validation:XValidation:rule="!has(self.metadata.exposure) || !has(self.metadata.exposure.hostname) || self.cells.all(cell, has(cell.metadataExposure) ? !has(cell.metadataExposure.hostname) || cell.metadataExposure.hostname != self.metadata.exposure.hostname : self.metadata.mode == 'Global')",message="must not use metadata.exposure.hostname for the metadata services of cells as well: give each cell a metadataExposure with another hostname"
type NovaTemplate struct {
	// deletionPolicy of the databases when the Nova is deleted: Retain, or Delete to drop
	// them. Registered accounts, vhosts and endpoints are always deleted. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	commonv1.ServiceDefaults `json:",inline"`

	// upgradePolicy has the settings of an upgrade to another release of Nova. A change of
	// containerImage within a release is no upgrade.
	// +optional
	UpgradePolicy UpgradePolicy `json:"upgradePolicy,omitzero"`

	// upkeep moves the rows of deleted instances, which Nova keeps for ever, into shadow tables of
	// each cell every day, and can delete them there. Default: nothing is moved or deleted.
	// +optional
	Upkeep *Upkeep `json:"upkeep,omitempty"`

	sharedv1.SharedConnections `json:",inline"`

	// superconductor has the settings of the conductor of the API database and cell0.
	// +optional
	Superconductor commonv1.ServiceTemplate `json:"superconductor,omitzero"`

	// scheduler has the settings of the service that chooses a compute host for a server.
	// +optional
	Scheduler commonv1.ServiceTemplate `json:"scheduler,omitzero"`

	// metadata has the settings of the service from which servers read their metadata.
	// +optional
	// +kubebuilder:default={}
	Metadata MetadataTemplate `json:"metadata,omitzero"`

	// api has the settings of the compute API.
	// +optional
	// +kubebuilder:default={}
	API APITemplate `json:"api,omitzero"`

	// cells lists the cells, 1 to 64. The operator creates a NovaCell for each. A cell that
	// is removed from the list is deleted when it has no compute host and no server; until
	// then it runs, and condition CellsReady lists its hosts and servers.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.database) || !has(a.database.connectionSecretRef) || self.exists_one(b, has(b.database) && has(b.database.connectionSecretRef) && b.database.connectionSecretRef.name == a.database.connectionSecretRef.name))",message="must have a different database.connectionSecretRef for every cell: cells cannot share a database"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.messageBus) || !has(a.messageBus.connectionSecretRef) || self.exists_one(b, has(b.messageBus) && has(b.messageBus.connectionSecretRef) && b.messageBus.connectionSecretRef.name == a.messageBus.connectionSecretRef.name))",message="must have a different messageBus.connectionSecretRef for every cell: cells cannot share a vhost"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !self.exists(b, b.name.startsWith(a.name + '-')))",message="must not have a cell with the name of another cell and '-', as cell1 and cell1-a: objects of both could have one name; call them cell1-a and cell1-b"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.metadataExposure) || !has(a.metadataExposure.hostname) || self.exists_one(b, has(b.metadataExposure) && has(b.metadataExposure.hostname) && b.metadataExposure.hostname == a.metadataExposure.hostname))",message="must have a different metadataExposure.hostname for every cell: a host name leads to one metadata service"
	Cells []Cell `json:"cells"`
}

// MetadataTemplate has the settings of the metadata service of a Nova.
type MetadataTemplate struct {
	commonv1.ServiceTemplate `json:",inline"`
	commonv1.WSGISettings    `json:",inline"`

	// mode is Global for one metadata service that answers for every cell, PerCell for one in
	// each cell, or GlobalAndPerCell for both, while the metadata agents of Neutron change
	// from one to the other. A service that is no longer wanted is deleted when those of the
	// new mode are ready. Default: Global.
	// +optional
	// +kubebuilder:default=Global
	Mode MetadataMode `json:"mode,omitempty"`

	// exposure decides how metadata agents of Neutron outside the cluster reach the metadata
	// service, or the one of each cell that has no metadataExposure. Default: type None.
	// +optional
	Exposure commonv1.Exposure `json:"exposure,omitzero"`
}

// APITemplate has the settings of the compute API of a Nova.
type APITemplate struct {
	commonv1.ServiceTemplate `json:",inline"`
	commonv1.WSGISettings    `json:",inline"`

	// exposure decides how clients outside the cluster reach the API. Default: type
	// Automatic.
	// +optional
	// +kubebuilder:default={type: Automatic}
	Exposure commonv1.Exposure `json:"exposure,omitzero"`

	// endpoints replace the addresses of the API in the catalog and in the status, by
	// interface, for example with those of a load balancer. Default: the addresses that the
	// NovaAPI reports. A change updates the catalog.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// NovaStatus is the observed state of a Nova.
type NovaStatus struct {
	commonv1.Status `json:",inline"`

	// database is the API database in use, as host:port/name. A database at another address is
	// used only if it exists and has the mark of this Nova.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Database string `json:"database,omitempty"`

	// release of Nova that runs, for example 31.0.0. During an upgrade, it is the former one. It is
	// absent until a Job has read it in the image.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Release string `json:"release,omitempty"`

	// containerImage is the image of the superconductor that may run: that of the spec, or the
	// former one until an upgrade is checked.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	// upgrade is the upgrade to another release that runs. It is absent otherwise.
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// upkeep is the last run of spec.upkeep that has succeeded. It is absent before.
	// +optional
	Upkeep *UpkeepStatus `json:"upkeep,omitempty"`

	// endpoints are the addresses of the compute API, as in the catalog.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`

	// openStackServices are the endpoints that Nova's processes find in the catalog and keep as long as
	// their tokens, as seen when the Nova was last available.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=6
	OpenStackServices []OpenStackServiceStatus `json:"openStackServices,omitempty"`

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
	MetadataAgent *MetadataAgent `json:"metadataAgent,omitempty"`

	// cells has the state of each cell in the spec, and of each cell that is being removed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Cells []CellStatus `json:"cells,omitempty"`
}

// OpenStackServiceStatus is the endpoint of an OpenStack service.
type OpenStackServiceStatus struct {
	// name of the service.
	// +required
	Name sharedv1.OpenStackServiceName `json:"name"`

	// endpoint in the catalog.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`

	// lookup has the service types, the interface, the region, if the spec states one, and a hash of
	// Nova's account, by which the endpoint was found.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Lookup string `json:"lookup,omitempty"`

	// changes is the number of changes of the endpoint. Each restarts the pods that call the service.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Changes int32 `json:"changes,omitempty"`

	// lastChangeTime is the time of the last change. The next one counts ten minutes later.
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`
}

// CellStatus is the state of one cell.
type CellStatus struct {
	// name of the cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name"`

	// uuid of the cell in its mapping.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// ready is the status of the NovaCell's Ready condition: True, False or Unknown.
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

	// mapped is True if the cell has an entry in the API database, False if it has none, and
	// Unknown until this is known.
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	Mapped metav1.ConditionStatus `json:"mapped,omitempty"`

	CellContent `json:",inline"`
}

// NovaList is a list of Novas.
//
// +kubebuilder:object:root=true
type NovaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Nova `json:"items"`
}
