package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// CellName is the name of a cell. The objects of the Nova itself have the reserved names.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]{0,14}$`
// +kubebuilder:validation:XValidation:rule="!(self in ['cell0', 'api', 'scheduler', 'metadata', 'conductor', 'superconductor', 'identity', 'messagebus'])",message="must not be one of the reserved names cell0, api, scheduler, metadata, conductor, superconductor, identity, messagebus: call it cell1, for example"
type CellName string

// APIAccess decides whether the conductor of a cell reaches the API database. This
// version accepts only Enabled.
// +kubebuilder:validation:Enum=Enabled
type APIAccess string

// APIAccessEnabled gives the cell's conductor the API database.
const APIAccessEnabled APIAccess = "Enabled"

// Cell is one cell of a Nova.
//
// +kubebuilder:validation:XValidation:rule="(has(self.database) && has(self.database.serviceRef) ? self.database.serviceRef.name : '-') == (has(oldSelf.database) && has(oldSelf.database.serviceRef) ? oldSelf.database.serviceRef.name : '-') && (has(self.database) && has(self.database.host) ? self.database.host : '-') == (has(oldSelf.database) && has(oldSelf.database.host) ? oldSelf.database.host : '-') && (has(self.database) && has(self.database.port) ? self.database.port : 0) == (has(oldSelf.database) && has(oldSelf.database.port) ? oldSelf.database.port : 0) && (has(self.database) && has(self.database.connectionSecretRef) ? self.database.connectionSecretRef.name : '-') == (has(oldSelf.database) && has(oldSelf.database.connectionSecretRef) ? oldSelf.database.connectionSecretRef.name : '-')",message="must not move to another database: this version does not move data; add another cell instead"
// +kubebuilder:validation:XValidation:rule="(has(self.messageBus) && has(self.messageBus.serviceRef) ? self.messageBus.serviceRef.name : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.serviceRef) ? oldSelf.messageBus.serviceRef.name : '-') && (has(self.messageBus) && has(self.messageBus.host) ? self.messageBus.host : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.host) ? oldSelf.messageBus.host : '-') && (has(self.messageBus) && has(self.messageBus.connectionSecretRef) ? self.messageBus.connectionSecretRef.name : '-') == (has(oldSelf.messageBus) && has(oldSelf.messageBus.connectionSecretRef) ? oldSelf.messageBus.connectionSecretRef.name : '-')",message="must not move to another message bus: this version does not move a cell; only adminSecretRef, port and managementPort can change"
type Cell struct {
	// name of the cell: at most 15 lower-case letters and digits, beginning with a
	// letter.
	// +required
	Name CellName `json:"name"`

	// apiAccess of the cell's conductor to the API database. This version accepts only
	// Enabled. Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	APIAccess APIAccess `json:"apiAccess,omitempty"`

	// database is the cell's own server, or the Secret of its own database. Default: a
	// database on the server of spec.database. It cannot change to another database.
	// +optional
	Database *Connection `json:"database,omitempty"`

	// messageBus is the cell's own RabbitMQ, or the Secret of its own vhost. Default: a
	// vhost on the RabbitMQ of spec.messageBus. It cannot change to another message bus.
	// +optional
	MessageBus *CellMessageBus `json:"messageBus,omitempty"`

	// conductor has the settings of the cell's conductor.
	// +optional
	Conductor commonv1.ServiceTemplate `json:"conductor,omitzero"`
}

// CellMessageBus is the RabbitMQ of one cell.
//
// +kubebuilder:validation:XValidation:rule="!has(self.managementPort) || !has(self.connectionSecretRef)",message="must not have managementPort together with connectionSecretRef: the operator registers nothing at this RabbitMQ"
type CellMessageBus struct {
	Connection `json:",inline"`

	// managementPort is the port of RabbitMQ's management API, which registers vhosts and
	// users. Default: the port named management of the Service (with TLS management-tls,
	// if it exists); with host 15672, or 15671 with TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ManagementPort *int32 `json:"managementPort,omitempty"`
}
