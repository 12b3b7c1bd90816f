package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// Server is the address of a server on which the operator registers accounts: a Service,
// or a host.
type Server struct {
	// serviceRef names the Service of the server; hostname and port come from it. It
	// cannot be changed.
	// +optional
	ServiceRef *commonv1.ServiceReference `json:"serviceRef,omitempty"`

	// host is the DNS name or the IP address of a server without a Service in this
	// namespace, such as one outside of the cluster. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$')",message="must be a DNS name or an IP address; the port belongs in field port"
	Host string `json:"host,omitempty"`

	// port of the host. It cannot be changed. Default: 3306 for a database; 5672, or
	// 5671 with TLS, for a message bus.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Connection is a server on which the operator registers accounts, or the
// Secret of what was registered there already.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceRef) || !has(self.host)",message="must have either serviceRef or host: both say where the server is"
// +kubebuilder:validation:XValidation:rule="has(self.host) || !has(self.port)",message="must have port beside host alone: a Service has ports of its own"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) || has(self.host)) == has(self.adminSecretRef)",message="must have adminSecretRef together with serviceRef or host: these say where to register, the Secret as whom"
// +kubebuilder:validation:XValidation:rule="has(self.connectionSecretRef) != (has(self.serviceRef) || has(self.host) || has(self.adminSecretRef))",message="must have either serviceRef or host and adminSecretRef, for the operator to register accounts, or connectionSecretRef, where that is done already"
type Connection struct {
	Server `json:",inline"`

	// adminSecretRef names the Secret with the account that may register others
	// there: user (or username), password and optionally ca.crt (which TLS needs), tls.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// connectionSecretRef names the Secret of what an administrator has registered:
	// hostname, user, password and what else the services read from such a Secret.
	// +optional
	ConnectionSecretRef *commonv1.SecretReference `json:"connectionSecretRef,omitempty"`
}

// Given says that an administrator has registered everything already.
func (c Connection) Given() bool { return c.ConnectionSecretRef != nil }

// DeletionPolicy says what becomes of databases when their owner is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain leaves the databases; a re-created CR of that name finds them.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete drops the databases.
	DeletionDelete DeletionPolicy = "Delete"
)

// QueueType is the type of RabbitMQ's queues.
// +kubebuilder:validation:Enum=Quorum;Classic
type QueueType string

const (
	// QueueQuorum makes replicated, durable queues.
	QueueQuorum QueueType = "Quorum"
	// QueueClassic makes classic queues.
	QueueClassic QueueType = "Classic"
)

// Database is where the API database, cell0 and, by default, the cells are.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceRef) || !has(self.host)",message="must have either serviceRef or host: both say where the server is"
// +kubebuilder:validation:XValidation:rule="has(self.host) || !has(self.port)",message="must have port beside host alone: a Service has ports of its own"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) || has(self.host)) == has(self.adminSecretRef)",message="must have adminSecretRef together with serviceRef or host: these say where to register, the Secret as whom"
// +kubebuilder:validation:XValidation:rule="has(self.apiDatabaseSecretRef) == has(self.cell0DatabaseSecretRef)",message="must have apiDatabaseSecretRef and cell0DatabaseSecretRef together: both databases are needed"
// +kubebuilder:validation:XValidation:rule="(has(self.apiDatabaseSecretRef) || has(self.cell0DatabaseSecretRef)) != (has(self.serviceRef) || has(self.host) || has(self.adminSecretRef))",message="must have either serviceRef or host and adminSecretRef, for the operator to register databases, or apiDatabaseSecretRef and cell0DatabaseSecretRef, where that is done already"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) ? self.serviceRef.name : '-') == (has(oldSelf.serviceRef) ? oldSelf.serviceRef.name : '-') && (has(self.host) ? self.host : '-') == (has(oldSelf.host) ? oldSelf.host : '-') && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0) && (has(self.apiDatabaseSecretRef) ? self.apiDatabaseSecretRef.name : '-') == (has(oldSelf.apiDatabaseSecretRef) ? oldSelf.apiDatabaseSecretRef.name : '-') && (has(self.cell0DatabaseSecretRef) ? self.cell0DatabaseSecretRef.name : '-') == (has(oldSelf.cell0DatabaseSecretRef) ? oldSelf.cell0DatabaseSecretRef.name : '-')",message="must not move to another server or Secret, which this version cannot follow: only adminSecretRef can change"
type Database struct {
	Server `json:",inline"`

	// adminSecretRef names the Secret with the account that may create databases
	// and accounts there: user (or username), password and optionally ca.crt (which TLS needs), tls.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// apiDatabaseSecretRef names the Secret with the connection to an API database that
	// an administrator has made: hostname, user, password and optionally port
	// (3306), database (nova_api), ca.crt (which TLS needs), tls.
	// +optional
	APIDatabaseSecretRef *commonv1.SecretReference `json:"apiDatabaseSecretRef,omitempty"`

	// cell0DatabaseSecretRef is the same for cell0 (database: nova_cell0). Every cell then
	// needs a database of its own.
	// +optional
	Cell0DatabaseSecretRef *commonv1.SecretReference `json:"cell0DatabaseSecretRef,omitempty"`
}

// Given says that an administrator has made the databases already.
func (d Database) Given() bool { return d.APIDatabaseSecretRef != nil }

// MessageBus is the RabbitMQ of the global services and, by default, the cells.
//
// +kubebuilder:validation:XValidation:rule="!has(self.managementPort) || !has(self.connectionSecretRef)",message="must not have managementPort beside connectionSecretRef: nothing is registered through it"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) ? self.serviceRef.name : '-') == (has(oldSelf.serviceRef) ? oldSelf.serviceRef.name : '-') && (has(self.host) ? self.host : '-') == (has(oldSelf.host) ? oldSelf.host : '-') && (has(self.port) ? self.port : 0) == (has(oldSelf.port) ? oldSelf.port : 0) && (has(self.connectionSecretRef) ? self.connectionSecretRef.name : '-') == (has(oldSelf.connectionSecretRef) ? oldSelf.connectionSecretRef.name : '-')",message="must not move to another message bus, which this version cannot follow: only adminSecretRef and managementPort can change"
type MessageBus struct {
	Connection `json:",inline"`

	// managementPort of RabbitMQ, through which vhosts and users are registered.
	// Default: the port named "management" of the Service; of a host 15672, or 15671 with
	// TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ManagementPort *int32 `json:"managementPort,omitempty"`

	// queueType is Quorum or Classic, also for every cell whose bus is registered;
	// with connectionSecretRef, that Secret's quorumQueues counts. It cannot be
	// changed. Default: Quorum.
	// +optional
	// +kubebuilder:default=Quorum
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: queues of another type need new vhosts"
	QueueType QueueType `json:"queueType,omitempty"`
}

// Identity is the account at Keystone.
//
// +kubebuilder:validation:XValidation:rule="has(self.adminSecretRef) != has(self.connectionSecretRef)",message="must have either adminSecretRef, for the operator to register user and endpoints, or connectionSecretRef, where that is done already"
type Identity struct {
	// adminSecretRef names the Secret with the account that may register the user
	// nova, the compute service and its endpoints: authURL, user (or username),
	// password and optionally publicAuthURL, project, userDomain, projectDomain,
	// ca.crt.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// connectionSecretRef names the Secret with an account that an administrator
	// has registered: authURL, user, password and optionally publicAuthURL, project
	// (service), userDomain and projectDomain (Default), region (RegionOne),
	// ca.crt. No endpoint is registered.
	// +optional
	ConnectionSecretRef *commonv1.SecretReference `json:"connectionSecretRef,omitempty"`

	// region of the endpoints; with connectionSecretRef, that Secret's region
	// counts. It cannot be changed. Default: RegionOne.
	// +optional
	// +kubebuilder:default=RegionOne
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-._A-Za-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: the endpoints in the catalog belong to the region they were registered in"
	Region string `json:"region,omitempty"`
}

// Given says that an administrator has registered the account already.
func (i Identity) Given() bool { return i.ConnectionSecretRef != nil }
