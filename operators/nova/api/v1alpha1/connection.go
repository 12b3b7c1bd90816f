package v1alpha1

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
)

// DeletionPolicy decides whether databases are dropped when their owner is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionRetain keeps the databases. An object that is created again under the same
	// name uses them.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDelete drops the databases.
	DeletionDelete DeletionPolicy = "Delete"
)

// QueueType is the type of RabbitMQ's queues.
// +kubebuilder:validation:Enum=Quorum;AllQuorum;Classic
type QueueType string

const (
	// QueueQuorum creates replicated, durable queues for requests.
	QueueQuorum QueueType = "Quorum"
	// QueueAllQuorum creates only replicated, durable queues, also for answers and for messages to
	// all services of a kind.
	QueueAllQuorum QueueType = "AllQuorum"
	// QueueClassic creates classic queues.
	QueueClassic QueueType = "Classic"
)

// Database is the server of the API database, of cell0 and, by default, of the cells; or
// the Secrets of the API database and of cell0. The address of the server may change if the
// databases are there: they have the marks of this Nova.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceRef) || !has(self.host)",message="must have either serviceRef or host, not both: each is an address of the server"
// +kubebuilder:validation:XValidation:rule="has(self.host) || !has(self.port)",message="must not have port without host: the port of a Service is read from the Service"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) || has(self.host)) == has(self.adminSecretRef)",message="must have adminSecretRef together with serviceRef or host: the operator registers accounts at this server with the account in the Secret"
// +kubebuilder:validation:XValidation:rule="has(self.apiDatabaseSecretRef) == has(self.cell0DatabaseSecretRef)",message="must have apiDatabaseSecretRef and cell0DatabaseSecretRef together: both databases are needed"
// +kubebuilder:validation:XValidation:rule="(has(self.apiDatabaseSecretRef) || has(self.cell0DatabaseSecretRef)) != (has(self.serviceRef) || has(self.host) || has(self.adminSecretRef))",message="must have either serviceRef or host with adminSecretRef, if the operator registers the databases, or apiDatabaseSecretRef and cell0DatabaseSecretRef, if an administrator has registered them"
// +kubebuilder:validation:XValidation:rule="has(self.adminSecretRef) == has(oldSelf.adminSecretRef) && (has(self.apiDatabaseSecretRef) ? self.apiDatabaseSecretRef.name : '-') == (has(oldSelf.apiDatabaseSecretRef) ? oldSelf.apiDatabaseSecretRef.name : '-') && (has(self.cell0DatabaseSecretRef) ? self.cell0DatabaseSecretRef.name : '-') == (has(oldSelf.cell0DatabaseSecretRef) ? oldSelf.cell0DatabaseSecretRef.name : '-')",message="must not change from a server to Secrets, from Secrets to a server, or to other Secrets: the operator could not tell whether the databases are the same"
type Database struct {
	registrationv1.Server `json:",inline"`

	// adminSecretRef names the Secret of the account that may create databases and accounts
	// on the server: user (or username), password and optionally ca.crt (required for TLS),
	// tls. After a change, the operator registers with the new account.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// apiDatabaseSecretRef names the Secret of an API database that an administrator has
	// created: hostname, user, password and optionally port (3306), database (nova_api),
	// ca.crt (required for TLS), tls. It cannot be changed.
	// +optional
	APIDatabaseSecretRef *commonv1.SecretReference `json:"apiDatabaseSecretRef,omitempty"`

	// cell0DatabaseSecretRef names the Secret of a database of cell0 that an administrator
	// has created, with the same keys (default of database: nova_cell0). Every cell must
	// then have a database of its own. It cannot be changed.
	// +optional
	Cell0DatabaseSecretRef *commonv1.SecretReference `json:"cell0DatabaseSecretRef,omitempty"`
}

// Given returns true if an administrator has created the databases.
func (d Database) Given() bool { return d.APIDatabaseSecretRef != nil }

// MessageBus is the RabbitMQ of the global services and, by default, of the cells.
//
// +kubebuilder:validation:XValidation:rule="!has(self.managementPort) || !has(self.connectionSecretRef)",message="must not have managementPort together with connectionSecretRef: the operator registers nothing at this RabbitMQ"
// +kubebuilder:validation:XValidation:rule="has(self.adminSecretRef) == has(oldSelf.adminSecretRef) && (has(self.connectionSecretRef) ? self.connectionSecretRef.name : '-') == (has(oldSelf.connectionSecretRef) ? oldSelf.connectionSecretRef.name : '-')",message="must not change from a server to a Secret, from a Secret to a server, or to another Secret: change the content of the Secret instead"
type MessageBus struct {
	registrationv1.Connection `json:",inline"`

	// managementPort is the port of RabbitMQ's management API, which registers vhosts and
	// users. Default: the port named management of the Service (with TLS management-tls,
	// if it exists); with host 15672, or 15671 with TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ManagementPort *int32 `json:"managementPort,omitempty"`

	// queueType of the global services and of every cell whose vhost the operator
	// registers: Quorum for queues of requests, AllQuorum also for answers and for messages to
	// all services of a kind, or Classic. AllQuorum requires Nova 29 (2024.1) or later in every
	// image and on every compute host. A connection Secret has the keys quorumQueues and
	// transientQuorumQueues instead. Default: Quorum. It cannot be changed.
	// +optional
	// +kubebuilder:default=Quorum
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: queues of another type require new vhosts"
	QueueType QueueType `json:"queueType,omitempty"`
}

// Identity is the account of the services at Keystone, and the region of the endpoints.
//
// +kubebuilder:validation:XValidation:rule="has(self.adminSecretRef) != has(self.connectionSecretRef)",message="must have either adminSecretRef, if the operator registers the user and the endpoints, or connectionSecretRef, if an administrator has registered them"
// +kubebuilder:validation:XValidation:rule="has(self.adminSecretRef) == has(oldSelf.adminSecretRef)",message="must not change between adminSecretRef and connectionSecretRef: nobody would remove the user and the endpoints that the operator has registered, or register those of an administrator"
type Identity struct {
	// adminSecretRef names the Secret of the account that may register Nova's user, the
	// compute service and its endpoints: authURL, user (or username), password and
	// optionally publicAuthURL, project (admin), userDomain and projectDomain (Default),
	// ca.crt. After a change, the operator registers with the new account.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// connectionSecretRef names the Secret of an account that an administrator has
	// registered: authURL, user, password, or authURL, applicationCredentialID,
	// applicationCredentialSecret; and optionally publicAuthURL, project (service),
	// userDomain and projectDomain (Default), region (RegionOne), ca.crt. The operator then
	// registers no user and no endpoint. A change restarts the services.
	// +optional
	ConnectionSecretRef *commonv1.SecretReference `json:"connectionSecretRef,omitempty"`

	// region of the endpoints. With connectionSecretRef, the key region of the Secret is
	// used instead. Default: RegionOne. It cannot be changed.
	// +optional
	// +kubebuilder:default=RegionOne
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-._A-Za-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: the endpoints in the catalog are registered in this region"
	Region string `json:"region,omitempty"`
}

// Given returns true if an administrator has registered the account.
func (i Identity) Given() bool { return i.ConnectionSecretRef != nil }
