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
	// ConditionWorkloadReady is True when the newest revision is rolled out.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
	// ConditionEndpointReady is True when the addresses in status.endpoints are known.
	ConditionEndpointReady = commonv1.ConditionEndpointReady
)

// NovaAPIConditions are the condition types of the stages, in their order.
var NovaAPIConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionWorkloadReady,
	ConditionEndpointReady,
}

// NovaAPI runs the compute API with its Service and the object that exposes the API.
// It checks tokens with the account of identitySecretRef.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=novaapis,scope=Namespaced,shortName=napi,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Public",type=string,JSONPath=`.status.endpoints[?(@.interface=="Public")].url`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 50 lower-case letters, digits and '-', begin with a letter and not end with '-': pods and Services are named after it"
type NovaAPI struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what is wanted.
	// +required
	Spec NovaAPISpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status NovaAPIStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (a *NovaAPI) Common() *commonv1.Status { return &a.Status.Status }

// ServiceStatus is the part of the status that the scale subresource reads.
func (a *NovaAPI) ServiceStatus() *commonv1.ServiceStatus { return &a.Status.ServiceStatus }

// NovaAPISpec is what is wanted of a NovaAPI.
type NovaAPISpec struct {
	commonv1.ServiceSpec `json:",inline"`
	commonv1.Connections `json:",inline"`

	// exposure says how clients outside of the cluster reach the API. Default: type
	// Automatic.
	// +optional
	// +kubebuilder:default={type: Automatic}
	Exposure commonv1.Exposure `json:"exposure,omitzero"`
}

// NovaAPIStatus is what was observed of a NovaAPI.
type NovaAPIStatus struct {
	commonv1.ServiceStatus `json:",inline"`

	// endpoints are the addresses at which the API is reached: Internal is the
	// Service; Public is that of the object that exposes the API, once the object is
	// admitted, or without such an object the Service.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// NovaAPIList is a list of NovaAPIs.
//
// +kubebuilder:object:root=true
type NovaAPIList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaAPI `json:"items"`
}
