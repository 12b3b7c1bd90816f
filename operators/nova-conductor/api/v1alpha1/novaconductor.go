package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Condition types of the stages, besides Ready and Stalled.
const (
	// ConditionInputsReady is True when the Secrets of the connections, and the Secrets
	// and ConfigMaps of extraFiles, exist and have the required keys.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionConfigReady is True when the configuration is accepted, and its ConfigMaps
	// and its Secret are applied.
	ConditionConfigReady = commonv1.ConditionConfigReady
	// ConditionSchemaReady is True when the Job that syncs the databases to the schema of
	// containerImage is complete, or schema.management is External.
	ConditionSchemaReady = "SchemaReady"
	// ConditionWorkloadReady is True when all pods run the newest revision and are available.
	// It is False while rollout is Held.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
)

// NovaConductorConditions are the condition types of the stages, in their order.
var NovaConductorConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionSchemaReady,
	ConditionWorkloadReady,
}

// ConductorRole selects the databases that a conductor serves.
// +kubebuilder:validation:Enum=Super;Cell
type ConductorRole string

const (
	// RoleSuper is the conductor of the API database and cell0.
	RoleSuper ConductorRole = "Super"
	// RoleCell is the conductor of one cell.
	RoleCell ConductorRole = "Cell"
)

// SchemaManagement defines whether the operator syncs the database schema.
// +kubebuilder:validation:Enum=Automatic;External
type SchemaManagement string

const (
	// SchemaAutomatic syncs the schema in a Job before the pods are rolled out.
	SchemaAutomatic SchemaManagement = "Automatic"
	// SchemaExternal runs no sync and does not check the schema.
	SchemaExternal SchemaManagement = "External"
)

// NovaConductor runs nova-conductor as the superconductor or for one cell, after a Job
// has synced the schema of its databases.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=novaconductors,scope=Namespaced,shortName=ncond,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 50 lower-case letters, digits and '-', begin with a letter and not end with '-': pods and Services are named after it"
type NovaConductor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaConductorSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaConductorStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (c *NovaConductor) Common() *commonv1.Status { return &c.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (c *NovaConductor) IsPaused() bool { return c.Spec.Paused }

// ServiceStatus returns the part of the status that the scale subresource reads.
func (c *NovaConductor) ServiceStatus() *commonv1.ServiceStatus { return &c.Status.ServiceStatus }

// NovaConductorSpec is the desired state of a NovaConductor.
//
// +kubebuilder:validation:XValidation:rule="self.role != 'Super' || has(self.apiDatabaseSecretRef)",message="must have apiDatabaseSecretRef for role Super: the superconductor serves the API database"
// +kubebuilder:validation:XValidation:rule="!has(self.cell0DatabaseSecretRef) || self.role == 'Cell' && has(self.apiDatabaseSecretRef)",message="must have cell0DatabaseSecretRef only with role Cell and apiDatabaseSecretRef: the API database has the URL of cell0, and databaseSecretRef of role Super is cell0"
type NovaConductorSpec struct {
	commonv1.ServiceSpec `json:",inline"`

	sharedv1.SharedConnections `json:",inline"`

	// role is Super for the superconductor (API database and cell0), or Cell for the
	// conductor of one cell. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: create another NovaConductor for the other role"
	Role ConductorRole `json:"role"`

	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database. Required keys: hostname, user, password. Optional keys: port (default
	// 3306), database (default nova_api), ca.crt (required for TLS), tls. Required for role
	// Super; with role Cell, the conductor gets access to the API database.
	// +optional
	APIDatabaseSecretRef *commonv1.SecretReference `json:"apiDatabaseSecretRef,omitempty"`

	// cell0DatabaseSecretRef names the Secret with the connection to cell0, for the conductor of
	// a cell with access to the API database: it has the URL of cell0 from there, and verifies the
	// server with ca.crt of this Secret. Optional keys: ca.crt, tls. Without it, the
	// conductor reaches a cell0 with TLS only if the cell's database has TLS with the same
	// authority. A change of ca.crt restarts the pods.
	// +optional
	Cell0DatabaseSecretRef *commonv1.SecretReference `json:"cell0DatabaseSecretRef,omitempty"`

	// databaseSecretRef names the Secret with the connection to the database of the cell,
	// which is cell0 for role Super. Required keys: hostname, user, password. Optional keys:
	// port (default 3306), database (default nova_cell0 for role Super, else nova), ca.crt
	// (required for TLS), tls. A changed connection syncs the schema again.
	// +required
	DatabaseSecretRef commonv1.SecretReference `json:"databaseSecretRef"`

	// messageBusSecretRef names the Secret with the connection to the message bus.
	// Required keys: hostname (or a list host[:port],...), user, password. Optional
	// keys: port (default 5672, with TLS 5671), vhost (default /), ca.crt (required
	// for TLS), tls, quorumQueues and transientQuorumQueues (default false).
	// +required
	MessageBusSecretRef commonv1.SecretReference `json:"messageBusSecretRef"`

	// identitySecretRef names the Secret with the service's account at Keystone.
	// Required keys: authURL, user, password, or authURL, applicationCredentialID,
	// applicationCredentialSecret. Optional keys: publicAuthURL (default
	// authURL), project (default service), userDomain and projectDomain (default
	// Default), region (default RegionOne), ca.crt. Without an account, the conductor
	// cannot query Placement.
	// +optional
	IdentitySecretRef *commonv1.SecretReference `json:"identitySecretRef,omitempty"`

	// schema defines who syncs the database schema.
	// +optional
	// +kubebuilder:default={}
	Schema SchemaSettings `json:"schema,omitzero"`

	// rollout is Automatic, or Held to sync the schema without a change of the pods, which
	// upgrades need. Default: Automatic. A change to Automatic rolls out the pods.
	// +optional
	// +kubebuilder:default=Automatic
	Rollout commonv1.RolloutMode `json:"rollout,omitempty"`
}

// SchemaSettings define who syncs the database schema.
type SchemaSettings struct {
	// management is Automatic, or External. Automatic syncs the schema in a Job, again for
	// another image or database connection. External runs no sync and does not check the
	// schema. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Management SchemaManagement `json:"management,omitempty"`
}

// NovaConductorStatus is the observed state of a NovaConductor.
type NovaConductorStatus struct {
	commonv1.ServiceStatus `json:",inline"`
}

// NovaConductorList is a list of NovaConductors.
//
// +kubebuilder:object:root=true
type NovaConductorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaConductor `json:"items"`
}
