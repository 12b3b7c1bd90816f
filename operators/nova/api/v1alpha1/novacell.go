package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
)

// Condition types of the stages of a NovaCell that a Nova does not have.
const (
	// ConditionSchemaReady is True when the API database and the cell's database have the
	// schema of the image.
	ConditionSchemaReady = "SchemaReady"
	// ConditionMapped is True when the cell is mapped in the API database with its current
	// connections. It stays True while a later schema Job runs or fails.
	ConditionMapped = "Mapped"
	// ConditionConsoleReady is True when the console proxy of the cell is ready, or the cell
	// has none.
	ConditionConsoleReady = "ConsoleReady"
	// ConditionComputeConfigReady is True when the Secret for the cell's compute hosts
	// exists.
	ConditionComputeConfigReady = "ComputeConfigReady"
	// ConditionComputesReady is True when the NovaCompute of every compute in the spec is
	// ready, and the others are removed.
	ConditionComputesReady = "ComputesReady"
	// ConditionDataMigrated is True when the online data migrations of dataMigrations are done in
	// the cell's database, or dataMigrations is not set.
	ConditionDataMigrated = "DataMigrated"
	// ConditionHostsMapped is True when discovery has run for every compute host in the
	// cell's database. Field status.hosts has the result.
	ConditionHostsMapped = "HostsMapped"
)

// ReasonDatabaseNotCopied is the reason of DatabaseReady while the database in the spec is not
// yet a copy of the database in status.database.
const ReasonDatabaseNotCopied = "DatabaseNotCopied"

// ReasonCellNotFound is the reason of DatabaseReady while the API database has no cell with the UUID
// in the spec.
const ReasonCellNotFound = "CellNotFound"

// ReasonAuthorityNotRead is the reason of Mapped while a service that reads the mapping of the cell
// does not have the certificate authorities of the cell's database and message bus.
const ReasonAuthorityNotRead = "AuthorityNotRead"

// NovaCellConditions are the condition types of the stages of a NovaCell, in order.
var NovaCellConditions = []string{
	ConditionInputsReady,
	ConditionCredentialsReady,
	ConditionDatabaseReady,
	ConditionMessageBusReady,
	ConditionConductorReady,
	ConditionSchemaReady,
	ConditionMapped,
	ConditionConsoleReady,
	ConditionComputeConfigReady,
	ConditionMetadataReady,
	ConditionDataMigrated,
	ConditionComputesReady,
	ConditionHostsMapped,
}

// CellScheduling decides whether new servers are placed in a cell.
// +kubebuilder:validation:Enum=Enabled;Disabled
type CellScheduling string

const (
	// SchedulingEnabled allows new servers in the cell.
	SchedulingEnabled CellScheduling = "Enabled"
	// SchedulingDisabled allows no new servers in the cell.
	SchedulingDisabled CellScheduling = "Disabled"
)

// NovaCell is one cell of a Nova: database, message bus, accounts, conductor, mapping,
// host discovery and the Secret for its compute hosts. The Nova creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=novacells,scope=Namespaced,shortName=ncell,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cell",type=string,JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="Hosts",type=integer,JSONPath=`.status.hosts.mapped`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.servers`
// +kubebuilder:printcolumn:name="Scheduling",type=string,JSONPath=`.status.scheduling`
// +kubebuilder:printcolumn:name="UUID",type=string,JSONPath=`.status.uuid`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name == self.spec.novaRef.name + '-' + self.spec.cellName",message="metadata.name must be <spec.novaRef.name>-<spec.cellName>: accounts and Secrets are named after both"
type NovaCell struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaCellSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaCellStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (c *NovaCell) Common() *commonv1.Status { return &c.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (c *NovaCell) IsPaused() bool { return c.Spec.Paused }

// NovaCellSpec is the desired state of a NovaCell.
type NovaCellSpec struct {
	commonv1.Pause `json:",inline"`

	// novaRef names the Nova of the cell. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: a cell stays with its Nova"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 24",message="must name a Nova, whose name has at most 24 characters"
	NovaRef commonv1.ObjectReference `json:"novaRef"`

	// cellName is the name of the cell in its mapping. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: database, vhost and mapping are named after it"
	CellName CellName `json:"cellName"`

	// uuid of a cell that is in the API database already, under another name or without a name.
	// Default: the cell is found by its name, or created.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	UUID string `json:"uuid,omitempty"`

	// apiDatabaseAccess lets the cell's conductor reach the API database: Enabled, or Disabled
	// for a cell that must not reach it. Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	APIDatabaseAccess APIDatabaseAccess `json:"apiDatabaseAccess,omitempty"`

	// scheduling of new servers in the cell: Enabled, or Disabled to place no new server in
	// the cell. Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	Scheduling CellScheduling `json:"scheduling,omitempty"`

	// deletionPolicy of the cell's database when the cell is deleted: Retain, or Delete to
	// drop it. Registered accounts and vhosts are always deleted. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// database is the server and the name of the cell's database, or its connection Secret.
	// +required
	Database NovaCellDatabase `json:"database"`

	// messageBus is the server and the name of the cell's vhost, or its connection Secret.
	// +required
	MessageBus NovaCellMessageBus `json:"messageBus"`

	// apiDatabaseSecretRef names the Secret with the connection to the API database, which
	// has the mapping of the cell.
	// +required
	APIDatabaseSecretRef commonv1.SecretReference `json:"apiDatabaseSecretRef"`

	// cell0DatabaseSecretRef names the Secret with the connection to cell0. A conductor with
	// access to the API database has the URL of cell0 from there, and verifies the server with
	// ca.crt of this Secret. Without it, the conductor reaches a cell0 with TLS only if the cell's
	// database has TLS with the same authority.
	// +optional
	Cell0DatabaseSecretRef *commonv1.SecretReference `json:"cell0DatabaseSecretRef,omitempty"`

	// identitySecretRef names the Secret with the services' account at Keystone.
	// +required
	IdentitySecretRef commonv1.SecretReference `json:"identitySecretRef"`

	sharedv1.SharedConnections `json:",inline"`

	// superconductorRef names the NovaConductor of role Super. The cell is mapped when the
	// condition SchemaReady of this NovaConductor is True.
	// +required
	SuperconductorRef commonv1.ObjectReference `json:"superconductorRef"`

	// conductor has the settings of the cell's conductor. Its containerImage also runs
	// nova-manage; default: the default image of the operator, if the operator has one.
	// +required
	Conductor commonv1.ServiceTemplate `json:"conductor"`

	// rollout is Automatic, or Held to sync the schema of the cell without a change of the
	// conductor's pods: an upgrade of the Nova updates the superconductor first. Default:
	// Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Rollout commonv1.RolloutMode `json:"rollout,omitempty"`

	// restartTriggers are those of the cell's conductor. The Nova sets one when an upgrade ends.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63 && size(self[key]) <= 64)",message="must have keys of at most 63 and values of at most 64 characters: use a hash as the value"
	RestartTriggers map[string]string `json:"restartTriggers,omitempty"`

	// dataMigrations is the release of Nova whose online data migrations a Job runs in the cell's
	// database. The Nova sets it when every compute has this release. Default: no migrations.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DataMigrations string `json:"dataMigrations,omitempty"`

	// metadataSecretRef names the Secret with key sharedSecret, with which the agents of the
	// cell's metadata service sign their requests. Default: the operator generates Secret
	// <name>-metadata.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	// metadata has the settings of the cell's own metadata service. Default: the cell has no
	// metadata service.
	// +optional
	Metadata *CellMetadata `json:"metadata,omitempty"`

	// noVNCProxy has the settings of the cell's console proxy. Default: the cell has no
	// consoles.
	// +optional
	NoVNCProxy *CellNoVNCProxy `json:"noVNCProxy,omitempty"`

	// computes lists the computes that run in this cluster. The operator creates a
	// NovaCompute for each. A compute that leaves the list runs while it has a server.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Computes []Compute `json:"computes,omitempty"`
}

// NovaCellDatabase is the server and the name of a cell's database.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(self.adminSecretRef)",message="must have name together with adminSecretRef, and not with connectionSecretRef: that Secret has the name"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(oldSelf.name) || self.name == oldSelf.name",message="must not change name: the database of a cell has the same name on every server"
type NovaCellDatabase struct {
	registrationv1.Connection `json:",inline"`

	// name of the database. It is required with adminSecretRef. It cannot be changed to
	// another name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	Name string `json:"name,omitempty"`
}

// NovaCellMessageBus is the server, the vhost and the type of a cell's queues.
//
// +kubebuilder:validation:XValidation:rule="has(self.vhost) == has(self.adminSecretRef)",message="must have vhost together with adminSecretRef, and not with connectionSecretRef: that Secret has the vhost"
// +kubebuilder:validation:XValidation:rule="!has(self.vhost) || !has(oldSelf.vhost) || self.vhost == oldSelf.vhost",message="must not change vhost: the vhost of a cell has the same name at every message bus"
type NovaCellMessageBus struct {
	CellMessageBus `json:",inline"`

	// vhost of the cell. It is required with adminSecretRef. It cannot be changed to another
	// name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	Vhost string `json:"vhost,omitempty"`

	// queueType of the vhost: Quorum for queues of requests, AllQuorum also for answers and for
	// messages to all services of a kind, or Classic. AllQuorum requires Nova 29 (2024.1) or later
	// in every image and on every compute host. A connection Secret has the keys quorumQueues and
	// transientQuorumQueues instead. Default: Quorum. It cannot be changed.
	// +optional
	// +kubebuilder:default=Quorum
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: queues of another type require a new vhost"
	QueueType QueueType `json:"queueType,omitempty"`
}

// NovaCellStatus is the observed state of a NovaCell.
type NovaCellStatus struct {
	commonv1.Status `json:",inline"`

	// uuid of the cell in its mapping.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	UUID string `json:"uuid,omitempty"`

	// database is the database of the last mapping, as host:port/name. The cell uses a
	// database at another address only if it is a copy.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Database string `json:"database,omitempty"`

	// nextDatabase is the database of the spec, as host:port/name, while the cell moves to it
	// and still uses the database in database. It is absent if both are the same.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	NextDatabase string `json:"nextDatabase,omitempty"`

	// messageBus is the message bus of the last mapping, as host:port,…/vhost.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	MessageBus string `json:"messageBus,omitempty"`

	// caFileRefs name the ConfigMaps with the certificate authorities of the cell's database and
	// message bus, for every service that reads the mapping. It is absent without TLS.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=2
	CAFileRefs []commonv1.KeyReference `json:"caFileRefs,omitempty"`

	// mapping describes the cell's entry in the API database.
	// +optional
	Mapping *CellMapping `json:"mapping,omitempty"`

	// corrections counts how often the cell's entry in the API database was written again because
	// it differed from the spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Corrections int32 `json:"corrections,omitempty"`

	CellContent `json:",inline"`

	// countedGeneration is the generation of the spec for which hosts and servers were counted last.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CountedGeneration int64 `json:"countedGeneration,omitempty"`
}

// CellMapping is a cell's entry in the API database. It is absent if the cell has none.
type CellMapping struct {
	// revision is a hash that changes with the connections in the mapping, or with the key of hashes.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`
}

// CellContent is the state of a cell that its NovaCell and its Nova report.
type CellContent struct {
	// scheduling of new servers in the cell according to the API database: Enabled or
	// Disabled. It is absent until it is read.
	// +optional
	Scheduling CellScheduling `json:"scheduling,omitempty"`

	// hosts counts the compute hosts in the cell's database. It is absent until the first
	// count.
	// +optional
	Hosts *CellHosts `json:"hosts,omitempty"`

	// servers is the number of servers in the cell's database. It is absent until the first
	// count.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Servers *int32 `json:"servers,omitempty"`

	// oldestServiceVersion is the smallest version of a service in the cell's database, a
	// number that every release of Nova increases. It is absent without a service.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OldestServiceVersion int32 `json:"oldestServiceVersion,omitempty"`

	// computeVersions counts the compute services in the cell's database by their version, the
	// oldest first, at most 16 versions.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=16
	ComputeVersions []ComputeVersion `json:"computeVersions,omitempty"`

	// computeConfigSecretRef names the Secret with the configuration that the compute hosts
	// of this cell mount. It is absent until the Secret is created.
	// +optional
	ComputeConfigSecretRef *commonv1.SecretReference `json:"computeConfigSecretRef,omitempty"`

	// computeConfigHash is a hash that changes with the content of the Secret of
	// computeConfigSecretRef, or with the key of hashes.
	// After a change, the compute hosts must read the new configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ComputeConfigHash string `json:"computeConfigHash,omitempty"`

	// metadataAgent is the configuration of the metadata agents that use the cell's own
	// metadata service. It is absent if the cell has none.
	// +optional
	MetadataAgent *MetadataAgent `json:"metadataAgent,omitempty"`
}

// MaxComputeVersions is the number of entries in computeVersions.
const MaxComputeVersions = 16

// ComputeVersion counts compute services.
type ComputeVersion struct {
	// version is a number that every release of Nova increases.
	// +required
	// +kubebuilder:validation:Minimum=0
	Version int32 `json:"version"`

	// count is the number of compute services with this version.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
}

// Occupants describes the compute hosts and the servers of the cell, "" for none.
func (c CellContent) Occupants() string {
	var parts []string
	if c.Hosts != nil && c.Hosts.Mapped+c.Hosts.Unmapped > 0 {
		names := strings.Join(c.Hosts.Names, ", ")
		if int(c.Hosts.Mapped+c.Hosts.Unmapped) > len(c.Hosts.Names) {
			names += ", …"
		}
		parts = append(parts, fmt.Sprintf("compute hosts: %d (%s)", c.Hosts.Mapped+c.Hosts.Unmapped, names))
	}
	if c.Servers != nil && *c.Servers > 0 {
		parts = append(parts, fmt.Sprintf("servers: %d", *c.Servers))
	}
	return strings.Join(parts, ", ")
}

// CellMetadata has the settings of the metadata service of a cell.
type CellMetadata struct {
	commonv1.ServiceTemplate `json:",inline"`
	commonv1.WSGISettings    `json:",inline"`

	// exposure decides how metadata agents of Neutron outside the cluster reach the service.
	// Default: type None.
	// +optional
	Exposure commonv1.Exposure `json:"exposure,omitzero"`
}

// MetadataAgent is the configuration of the metadata agents of Neutron for one metadata
// service.
type MetadataAgent struct {
	// secretRef names the Secret with the keys host, port, protocol and sharedSecret and, while
	// the service is exposed, publicHost, publicPort and publicProtocol for agents outside the
	// cluster. Key ca.crt is copied from the Secret of the service's tlsSecretRef.
	// +required
	SecretRef commonv1.SecretReference `json:"secretRef"`

	// hash changes with the content of the Secret, or with the key of hashes. After a change, the
	// agents must read the new configuration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash"`
}

// MaxHostNames is the number of names in CellHosts.
const MaxHostNames = 8

// CellHosts counts compute hosts.
type CellHosts struct {
	// mapped is the number of compute hosts on which servers can be placed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Mapped int32 `json:"mapped"`

	// unmapped is the number of compute hosts that have no mapping yet: no servers are placed
	// on them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unmapped int32 `json:"unmapped"`

	// names are the first names of compute hosts, at most 8.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=255
	Names []string `json:"names,omitempty"`
}

// NovaCellList is a list of NovaCells.
//
// +kubebuilder:object:root=true
type NovaCellList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaCell `json:"items"`
}
