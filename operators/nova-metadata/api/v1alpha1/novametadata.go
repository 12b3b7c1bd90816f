package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Condition types of the stages, besides Ready and Stalled.
const (
	// ConditionInputsReady is True when the Secrets of the connections, of metadataSecretRef
	// and of tlsSecretRef, and the Secrets and ConfigMaps of extraFiles, exist and have the
	// required keys.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionConfigReady is True when the configuration is accepted, and its ConfigMaps
	// and its Secret are applied.
	ConditionConfigReady = commonv1.ConditionConfigReady
	// ConditionImageReady is True when the image has a server for the application, and the
	// programs, modules and files that the application needs. Pods run only such an image.
	ConditionImageReady = commonv1.ConditionImageReady
	// ConditionWorkloadReady is True when all pods run the newest revision and are available.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
	// ConditionEndpointReady is True when the object that exposes the service is admitted, or
	// no object exposes the service. exposure.tlsSecretRef, if set, must name a Secret with
	// tls.crt and tls.key.
	ConditionEndpointReady = commonv1.ConditionEndpointReady
)

// NovaMetadataConditions are the condition types of the stages, in their order.
var NovaMetadataConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionImageReady,
	ConditionWorkloadReady,
	ConditionEndpointReady,
}

// MetadataMode selects the cells that a metadata service serves.
// +kubebuilder:validation:Enum=Global;Cell
type MetadataMode string

const (
	// MetadataGlobal serves every cell.
	MetadataGlobal MetadataMode = "Global"
	// MetadataCell serves the servers of one cell.
	MetadataCell MetadataMode = "Cell"
)

// NovaMetadata runs the metadata API, from which servers read their own metadata, with its
// Service and the object that exposes the service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=novametadata,scope=Namespaced,shortName=nmeta,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Public",type=string,JSONPath=`.status.endpoints[?(@.interface=="Public")].url`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 50 lower-case letters, digits and '-', begin with a letter and not end with '-': pods and Services are named after it"
type NovaMetadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaMetadataSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaMetadataStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (m *NovaMetadata) Common() *commonv1.Status { return &m.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (m *NovaMetadata) IsPaused() bool { return m.Spec.Paused }

// ServiceStatus returns the part of the status that the scale subresource reads.
func (m *NovaMetadata) ServiceStatus() *commonv1.ServiceStatus { return &m.Status.ServiceStatus }

// NovaMetadataSpec is the desired state of a NovaMetadata.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Cell' || has(self.apiDatabaseSecretRef) && has(self.cell0DatabaseSecretRef) && !has(self.databaseSecretRef)",message="must have apiDatabaseSecretRef and cell0DatabaseSecretRef, and not databaseSecretRef, for mode Global: the service finds every cell in the API database"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Global' || has(self.databaseSecretRef) && !has(self.apiDatabaseSecretRef) && !has(self.cell0DatabaseSecretRef)",message="must have databaseSecretRef, and neither apiDatabaseSecretRef nor cell0DatabaseSecretRef, for mode Cell: the service reads only the database of its cell"
type NovaMetadataSpec struct {
	commonv1.ServiceSpec `json:",inline"`

	sharedv1.SharedConnections `json:",inline"`

	commonv1.WSGISettings `json:",inline"`

	// mode is Global for a metadata service that serves every cell, or Cell for one that
	// serves the servers of one cell. Default: Global. It cannot be changed.
	// +optional
	// +kubebuilder:default=Global
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="must not change: create another NovaMetadata for the other mode"
	Mode MetadataMode `json:"mode,omitempty"`

	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database. Required keys: hostname, user, password. Optional keys: port (default
	// 3306), database (default nova_api), ca.crt (required for TLS), tls. Required for mode
	// Global.
	// +optional
	APIDatabaseSecretRef *commonv1.SecretReference `json:"apiDatabaseSecretRef,omitempty"`

	// cell0DatabaseSecretRef names the Secret with the connection to the database of
	// cell0. Required keys: hostname, user, password. Optional keys: port (default
	// 3306), database (default nova_cell0), ca.crt (required for TLS), tls. Required for mode
	// Global.
	// +optional
	Cell0DatabaseSecretRef *commonv1.SecretReference `json:"cell0DatabaseSecretRef,omitempty"`

	// databaseSecretRef names the Secret with the connection to the database of the cell.
	// Required keys: hostname, user, password. Optional keys: port (default 3306), database
	// (default nova), ca.crt (required for TLS), tls. Required for mode Cell.
	// +optional
	DatabaseSecretRef *commonv1.SecretReference `json:"databaseSecretRef,omitempty"`

	// messageBusSecretRef names the Secret with the connection to the message bus, for mode
	// Cell of the cell.
	// Required keys: hostname (or a list host[:port],...), user, password. Optional
	// keys: port (default 5672, with TLS 5671), vhost (default /), ca.crt (required
	// for TLS), tls, quorumQueues and transientQuorumQueues (default false).
	// +required
	MessageBusSecretRef commonv1.SecretReference `json:"messageBusSecretRef"`

	// metadataSecretRef names the Secret with the secret of the metadata agents of Neutron,
	// which sign their requests with it. Required key: sharedSecret.
	// +required
	MetadataSecretRef commonv1.SecretReference `json:"metadataSecretRef"`

	// identitySecretRef names the Secret with the service's account at Keystone.
	// Required keys: authURL, user, password, or authURL, applicationCredentialID,
	// applicationCredentialSecret. Optional keys: publicAuthURL (default
	// authURL), project (default service), userDomain and projectDomain (default
	// Default), region (default RegionOne), ca.crt. The service queries Neutron with
	// this account.
	// +optional
	IdentitySecretRef *commonv1.SecretReference `json:"identitySecretRef,omitempty"`

	// exposure defines how metadata agents of Neutron outside the cluster reach the service.
	// Default: type None. A change updates or replaces the object that exposes the service, and
	// restarts no pods.
	// +optional
	Exposure commonv1.Exposure `json:"exposure,omitzero"`
}

// NovaMetadataStatus is the observed state of a NovaMetadata.
type NovaMetadataStatus struct {
	commonv1.ServiceStatus `json:",inline"`

	// endpoints are the addresses of the service. Internal is the address of the Service, for
	// the metadata agents of Neutron in the cluster. Public is the address of the object that
	// exposes the service; it is absent if no object exposes the service. Until a new object is
	// admitted, the former Public stays.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// NovaMetadataList is a list of NovaMetadata.
//
// +kubebuilder:object:root=true
type NovaMetadataList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaMetadata `json:"items"`
}
