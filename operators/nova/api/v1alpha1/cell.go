package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// CellName names a cell. What is made for a Nova itself uses the reserved names.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]{0,14}$`
// +kubebuilder:validation:XValidation:rule="!(self in ['cell0', 'api', 'scheduler', 'metadata', 'conductor', 'superconductor', 'identity', 'messagebus'])",message="must not be one of the reserved names cell0, api, scheduler, metadata, conductor, superconductor, identity, messagebus: call it cell1, for example"
type CellName string

// APIAccess says whether a cell's services may reach the API database. Only
// Enabled is accepted by this version.
// +kubebuilder:validation:Enum=Enabled
type APIAccess string

// APIAccessEnabled gives the cell's conductor the API database.
const APIAccessEnabled APIAccess = "Enabled"

// Cell is one cell of a Nova.
//
// +kubebuilder:validation:XValidation:rule="(has(self.database) && has(self.database.serviceRef) ? self.database.serviceRef.name : '-') == (has(oldSelf.database) && has(oldSelf.database.serviceRef) ? oldSelf.database.serviceRef.name : '-') && (has(self.database) && has(self.database.host) ? self.database.host : '-') == (has(oldSelf.database) && has(oldSelf.database.host) ? oldSelf.database.host : '-') && (has(self.database) && has(self.database.port) ? self.database.port : 0) == (has(oldSelf.database) && has(oldSelf.database.port) ? oldSelf.database.port : 0) && (has(self.database) && has(self.database.connectionSecretRef) ? self.database.connectionSecretRef.name : '-') == (has(oldSelf.database) && has(oldSelf.database.connectionSecretRef) ? oldSelf.database.connectionSecretRef.name : '-')",message="must not move to another database, which this version cannot follow: add another cell instead"
// +kubebuilder:validation:XValidation:rule="(has(self.messageBus) && has(self.messageBus.serviceRef) ? self.messageBus.serviceRef.name : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.serviceRef) ? oldSelf.messageBus.serviceRef.name : '-') && (has(self.messageBus) && has(self.messageBus.host) ? self.messageBus.host : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.host) ? oldSelf.messageBus.host : '-') && (has(self.messageBus) && has(self.messageBus.port) ? self.messageBus.port : 0) == (has(oldSelf.messageBus) && has(oldSelf.messageBus.port) ? oldSelf.messageBus.port : 0) && (has(self.messageBus) && has(self.messageBus.connectionSecretRef) ? self.messageBus.connectionSecretRef.name : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.connectionSecretRef) ? oldSelf.messageBus.connectionSecretRef.name : '-')",message="must not move to another message bus, which this version cannot follow: only adminSecretRef and managementPort can change"
type Cell struct {
	// name of the cell: at most 15 lower-case letters and digits, beginning with a
	// letter.
	// +required
	Name CellName `json:"name"`

	// apiAccess is Enabled: the cell's conductor reaches the API database.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	APIAccess APIAccess `json:"apiAccess,omitempty"`

	// database is the cell's own server; absent: the one of the whole Nova. It
	// cannot be moved.
	// +optional
	Database *Connection `json:"database,omitempty"`

	// messageBus is the cell's own RabbitMQ; absent: a vhost on the one of the
	// whole Nova. It cannot be moved.
	// +optional
	MessageBus *CellMessageBus `json:"messageBus,omitempty"`

	// conductor of the cell.
	// +optional
	Conductor commonv1.ServiceTemplate `json:"conductor,omitzero"`
}

// CellMessageBus is the RabbitMQ of one cell.
//
// +kubebuilder:validation:XValidation:rule="!has(self.managementPort) || !has(self.connectionSecretRef)",message="must not have managementPort beside connectionSecretRef: nothing is registered through it"
type CellMessageBus struct {
	Connection `json:",inline"`

	// managementPort of RabbitMQ, through which vhosts and users are registered.
	// Default: the port named "management" of the Service; of a host 15672, or 15671 with
	// TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ManagementPort *int32 `json:"managementPort,omitempty"`
}
