package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of NovaCell's stages that Nova does not have.
const (
	// ConditionSchemaReady is True when the API database and the cell's have the
	// schema of the image.
	ConditionSchemaReady = "SchemaReady"
	// ConditionMapped is True when the cell is mapped in the API database with the
	// connections that it has. It stays True while a schema is synchronised anew.
	ConditionMapped = "Mapped"
	// ConditionComputeConfigReady is True when the Secret for the cell's computes exists.
	ConditionComputeConfigReady = "ComputeConfigReady"
	// ConditionHostsMapped is True when discovery has run for every compute host
	// that the cell knows; status.hosts has the outcome.
	ConditionHostsMapped = "HostsMapped"
)

// NovaCellConditions are the condition types of NovaCell's stages, in their order.
var NovaCellConditions = []string{
	ConditionInputsReady,
	ConditionCredentialsReady,
	ConditionDatabaseReady,
	ConditionMessageBusReady,
	ConditionConductorReady,
	ConditionSchemaReady,
	ConditionMapped,
	ConditionComputeConfigReady,
	ConditionHostsMapped,
}

// CellScheduling says whether new servers are placed in a cell.
// +kubebuilder:validation:Enum=Enabled;Disabled
type CellScheduling string

const (
	// SchedulingEnabled lets the scheduler use the cell.
	SchedulingEnabled CellScheduling = "Enabled"
	// SchedulingDisabled keeps new servers out of the cell.
	SchedulingDisabled CellScheduling = "Disabled"
)

// NovaCell is one cell of a Nova: database, message bus, accounts, conductor,
// mapping, host discovery and the Secret for its computes. Nova makes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=novacells,scope=Namespaced,shortName=ncell,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cell",type=string,JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="Hosts",type=integer,JSONPath=`.status.hosts.mapped`
// +kubebuilder:printcolumn:name="UUID",type=string,JSONPath=`.status.uuid`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name == self.spec.novaRef.name + '-' + self.spec.cellName",message="metadata.name must be <spec.novaRef.name>-<spec.cellName>: accounts and Secrets are named after both"
type NovaCell struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec NovaCellSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status NovaCellStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (c *NovaCell) Common() *commonv1.Status { return &c.Status.Status }

// NovaCellSpec is what is wanted of a NovaCell.
type NovaCellSpec struct {
	// novaRef names the Nova that the cell belongs to. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: a cell stays with its Nova"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 24",message="must name a Nova, whose name has at most 24 characters"
	NovaRef commonv1.ObjectReference `json:"novaRef"`

	// cellName is the name of the cell inside Nova. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: database, vhost and mapping are named after it"
	CellName CellName `json:"cellName"`

	// apiAccess is Enabled: the cell's conductor reaches the API database.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	APIAccess APIAccess `json:"apiAccess,omitempty"`

	// deletionPolicy is Retain, or Delete to drop the cell's database when the
	// cell is deleted. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// database is where the cell's database is.
	// +required
	Database NovaCellDatabase `json:"database"`

	// messageBus is where the cell's vhost is.
	// +required
	MessageBus NovaCellMessageBus `json:"messageBus"`

	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database, in which the cell is mapped.
	// +required
	APIDatabaseSecretRef commonv1.SecretReference `json:"apiDatabaseSecretRef"`

	// identitySecretRef names the Secret with the services' account at Keystone.
	// +required
	IdentitySecretRef commonv1.SecretReference `json:"identitySecretRef"`

	// superconductorRef names the NovaConductor of role Super; the cell is mapped
	// after its SchemaReady.
	// +required
	SuperconductorRef commonv1.ObjectReference `json:"superconductorRef"`

	// conductor of the cell; its containerImage also runs nova-manage.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.containerImage)",message="must have containerImage: it runs the conductor and nova-manage"
	Conductor commonv1.ServiceTemplate `json:"conductor"`
}

// NovaCellDatabase is the server and the name of a cell's database.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(self.adminSecretRef)",message="must have name beside adminSecretRef, and not beside connectionSecretRef, which has it itself"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) ? self.serviceRef.name : '-') == (has(oldSelf.serviceRef) ? oldSelf.serviceRef.name : '-') && (has(self.host) ? self.host : '-') == (has(oldSelf.host) ? oldSelf.host : '-') && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0) && (has(self.connectionSecretRef) ? self.connectionSecretRef.name : '-') == (has(oldSelf.connectionSecretRef) ? oldSelf.connectionSecretRef.name : '-') && (has(self.name) ? self.name : '-') == (has(oldSelf.name) ? oldSelf.name : '-')",message="must not move to another database, which this version cannot follow: only adminSecretRef can change"
type NovaCellDatabase struct {
	Connection `json:",inline"`

	// name of the database. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	Name string `json:"name,omitempty"`
}

// NovaCellMessageBus is the server, the vhost and the type of a cell's queues.
//
// +kubebuilder:validation:XValidation:rule="has(self.vhost) == has(self.adminSecretRef)",message="must have vhost beside adminSecretRef, and not beside connectionSecretRef, which has it itself"
// +kubebuilder:validation:XValidation:rule="(has(self.vhost) ? self.vhost : '-') == (has(oldSelf.vhost) ? oldSelf.vhost : '-')",message="must not change vhost: queues and account are in it"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) ? self.serviceRef.name : '-') == (has(oldSelf.serviceRef) ? oldSelf.serviceRef.name : '-') && (has(self.host) ? self.host : '-') == (has(oldSelf.host) ? oldSelf.host : '-') && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0) && (has(self.connectionSecretRef) ? self.connectionSecretRef.name : '-') == (has(oldSelf.connectionSecretRef) ? oldSelf.connectionSecretRef.name : '-')",message="must not move to another message bus, which this version cannot follow: only adminSecretRef and managementPort can change"
type NovaCellMessageBus struct {
	CellMessageBus `json:",inline"`

	// vhost of the cell. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	Vhost string `json:"vhost,omitempty"`

	// queueType is Quorum or Classic; with connectionSecretRef, that Secret's
	// quorumQueues counts. It cannot be changed. Default: Quorum.
	// +optional
	// +kubebuilder:default=Quorum
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: queues of another type need a new vhost"
	QueueType QueueType `json:"queueType,omitempty"`
}

// NovaCellStatus is what was observed of a NovaCell.
type NovaCellStatus struct {
	commonv1.Status `json:",inline"`

	// uuid under which the cell is mapped.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	UUID string `json:"uuid,omitempty"`

	// mapping is what the API database says about the cell.
	// +optional
	Mapping *CellMapping `json:"mapping,omitempty"`

	// hosts counts the compute hosts that the cell knows; absent: not counted yet.
	// +optional
	Hosts *CellHosts `json:"hosts,omitempty"`

	// computeConfigSecretRef names the Secret with everything that a compute host
	// of this cell needs; absent: not made yet.
	// +optional
	ComputeConfigSecretRef *commonv1.SecretReference `json:"computeConfigSecretRef,omitempty"`
}

// CellMapping is a cell's entry in the API database.
type CellMapping struct {
	// revision is a hash of the connections that were mapped last.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`

	// scheduling says whether new servers are placed in the cell: Enabled or
	// Disabled.
	// +optional
	Scheduling CellScheduling `json:"scheduling,omitempty"`
}

// CellHosts counts compute hosts.
type CellHosts struct {
	// mapped hosts can be given servers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Mapped int32 `json:"mapped"`

	// unmapped hosts have announced themselves and wait for discovery. One that
	// was mapped before and has announced itself anew is counted here for good:
	// nova-manage marks hosts only when it maps them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unmapped int32 `json:"unmapped"`
}

// NovaCellList is a list of NovaCells.
//
// +kubebuilder:object:root=true
type NovaCellList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaCell `json:"items"`
}
