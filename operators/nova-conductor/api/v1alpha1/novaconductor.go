package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Condition types of the stages, besides Ready and Stalled.
const (
	// ConditionInputsReady is True when every Secret and ConfigMap that the spec
	// names exists and has the keys that are needed.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionConfigReady is True when the configuration was checked and stored.
	ConditionConfigReady = commonv1.ConditionConfigReady
	// ConditionSchemaReady is True when the databases have the schema of this image.
	ConditionSchemaReady = "SchemaReady"
	// ConditionWorkloadReady is True when the newest revision is rolled out.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
)

// NovaConductorConditions are the condition types of the stages, in their order.
var NovaConductorConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionSchemaReady,
	ConditionWorkloadReady,
}

// ConductorRole says which databases a conductor serves.
// +kubebuilder:validation:Enum=Super;Cell
type ConductorRole string

const (
	// RoleSuper is the conductor of the API database and cell0.
	RoleSuper ConductorRole = "Super"
	// RoleCell is the conductor of one cell.
	RoleCell ConductorRole = "Cell"
)

// SchemaManagement says who brings the database schema up to date.
// +kubebuilder:validation:Enum=Automatic;External
type SchemaManagement string

const (
	// SchemaAutomatic lets the operator run nova-manage's syncs before the pods.
	SchemaAutomatic SchemaManagement = "Automatic"
	// SchemaExternal expects the schema to be there: somebody else runs the syncs.
	SchemaExternal SchemaManagement = "External"
)

// RolloutMode says whether the pods follow the spec.
// +kubebuilder:validation:Enum=Automatic;Held
type RolloutMode string

const (
	// RolloutAutomatic rolls the pods whenever image or configuration change.
	RolloutAutomatic RolloutMode = "Automatic"
	// RolloutHeld brings the schema up to date and leaves the pods as they are.
	RolloutHeld RolloutMode = "Held"
)

// NovaConductor runs nova-conductor as the superconductor or for one cell, after
// having brought the schema of its databases up to date.
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

	// spec is what is wanted.
	// +required
	Spec NovaConductorSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status NovaConductorStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (c *NovaConductor) Common() *commonv1.Status { return &c.Status.Status }

// ServiceStatus is the part of the status that the scale subresource reads.
func (c *NovaConductor) ServiceStatus() *commonv1.ServiceStatus { return &c.Status.ServiceStatus }

// NovaConductorSpec is what is wanted of a NovaConductor.
//
// +kubebuilder:validation:XValidation:rule="self.role != 'Super' || has(self.apiDatabaseSecretRef)",message="must have apiDatabaseSecretRef for role Super: the superconductor serves the API database"
type NovaConductorSpec struct {
	commonv1.ServiceSpec `json:",inline"`

	// role is Super for the superconductor (API database and cell0) or Cell for
	// the conductor of one cell. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: create another NovaConductor for the other role"
	Role ConductorRole `json:"role"`

	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database: hostname, user, password and optionally port (3306), database
	// (nova_api), ca.crt (which TLS needs), tls. Required for role Super; for role Cell it gives the
	// conductor API access.
	// +optional
	APIDatabaseSecretRef *commonv1.SecretReference `json:"apiDatabaseSecretRef,omitempty"`

	// databaseSecretRef names the Secret with the connection to the cell's
	// database, which is cell0 for role Super: hostname, user, password and
	// optionally port (3306), database (nova_cell0 for role Super, else nova),
	// ca.crt (which TLS needs), tls.
	// +required
	DatabaseSecretRef commonv1.SecretReference `json:"databaseSecretRef"`

	// messageBusSecretRef names the Secret with the connection to the message
	// bus: hostname (or a list host[:port],...), user, password and optionally
	// port (5672, 5671 with TLS), vhost (/), ca.crt (which TLS needs), tls, quorumQueues.
	// +required
	MessageBusSecretRef commonv1.SecretReference `json:"messageBusSecretRef"`

	// identitySecretRef names the Secret with the service's account at Keystone:
	// authURL, user, password and optionally publicAuthURL, project (service),
	// userDomain and projectDomain (Default), region (RegionOne), ca.crt.
	// +optional
	IdentitySecretRef *commonv1.SecretReference `json:"identitySecretRef,omitempty"`

	// schema says who brings the database schema up to date.
	// +optional
	// +kubebuilder:default={}
	Schema SchemaSettings `json:"schema,omitzero"`

	// rollout is Automatic, or Held to bring the schema up to date and leave the
	// pods as they are, which upgrades need. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Rollout RolloutMode `json:"rollout,omitempty"`
}

// SchemaSettings say who brings the database schema up to date.
type SchemaSettings struct {
	// management is Automatic, or External where somebody else runs nova-manage's
	// syncs. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Management SchemaManagement `json:"management,omitempty"`
}

// NovaConductorStatus is what was observed of a NovaConductor.
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
