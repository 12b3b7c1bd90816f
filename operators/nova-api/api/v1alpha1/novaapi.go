package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Condition types of the stages, besides Ready and Stalled.
const (
	// ConditionInputsReady is True when the Secrets of the connections and of tlsSecretRef,
	// and the Secrets and ConfigMaps of extraFiles, exist and have the required keys.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionConfigReady is True when the configuration is accepted, and its ConfigMaps
	// and its Secret are applied.
	ConditionConfigReady = commonv1.ConditionConfigReady
	// ConditionImageReady is True when the image has a server for the application, and the
	// programs, modules and files that the application needs. Pods run only such an image.
	ConditionImageReady = commonv1.ConditionImageReady
	// ConditionWorkloadReady is True when all pods run the newest revision and are available.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
	// ConditionEndpointReady is True when the object that exposes the API is admitted, or
	// no object exposes the API. exposure.tlsSecretRef, if set, must name a Secret with
	// tls.crt and tls.key.
	ConditionEndpointReady = commonv1.ConditionEndpointReady
)

// NovaAPIConditions are the condition types of the stages, in their order.
var NovaAPIConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionImageReady,
	ConditionWorkloadReady,
	ConditionEndpointReady,
}

// NovaAPI runs the compute API with its Service and the object that exposes the API.
// The API validates the tokens of users with the account in identitySecretRef.
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

	// spec is the desired state.
	// +required
	Spec NovaAPISpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaAPIStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (a *NovaAPI) Common() *commonv1.Status { return &a.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (a *NovaAPI) IsPaused() bool { return a.Spec.Paused }

// ServiceStatus returns the part of the status that the scale subresource reads.
func (a *NovaAPI) ServiceStatus() *commonv1.ServiceStatus { return &a.Status.ServiceStatus }

// NovaAPISpec is the desired state of a NovaAPI.
type NovaAPISpec struct {
	commonv1.ServiceSpec  `json:",inline"`
	commonv1.WSGISettings `json:",inline"`
	sharedv1.Connections  `json:",inline"`

	sharedv1.SharedConnections `json:",inline"`

	// exposure defines how clients outside the cluster reach the API. Default: type
	// Automatic. A change updates or replaces the object that exposes the API, and restarts
	// no pods.
	// +optional
	// +kubebuilder:default={type: Automatic}
	Exposure commonv1.Exposure `json:"exposure,omitzero"`
}

// NovaAPIStatus is the observed state of a NovaAPI.
type NovaAPIStatus struct {
	commonv1.ServiceStatus `json:",inline"`

	// endpoints are the addresses of the API. Internal is the address of the Service.
	// Public is the address of the object that exposes the API, or of the Service if no
	// object exposes the API. Until a new object is admitted, the former Public stays.
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
