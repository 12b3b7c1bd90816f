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
	// ConditionWorkloadReady is True when all pods run the newest revision and are available.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
)

// NovaSchedulerConditions are the condition types of the stages, in their order.
var NovaSchedulerConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionWorkloadReady,
}

// NovaScheduler runs nova-scheduler, which selects a host for every server. nova-scheduler
// queries Placement with the account in identitySecretRef.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=novaschedulers,scope=Namespaced,shortName=nsched,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 50 lower-case letters, digits and '-', begin with a letter and not end with '-': pods and Services are named after it"
type NovaScheduler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaSchedulerSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaSchedulerStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (s *NovaScheduler) Common() *commonv1.Status { return &s.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (s *NovaScheduler) IsPaused() bool { return s.Spec.Paused }

// ServiceStatus returns the part of the status that the scale subresource reads.
func (s *NovaScheduler) ServiceStatus() *commonv1.ServiceStatus { return &s.Status.ServiceStatus }

// NovaSchedulerSpec is the desired state of a NovaScheduler.
type NovaSchedulerSpec struct {
	commonv1.ServiceSpec `json:",inline"`
	sharedv1.Connections `json:",inline"`

	sharedv1.SharedConnections `json:",inline"`
}

// NovaSchedulerStatus is the observed state of a NovaScheduler.
type NovaSchedulerStatus struct {
	commonv1.ServiceStatus `json:",inline"`
}

// NovaSchedulerList is a list of NovaSchedulers.
//
// +kubebuilder:object:root=true
type NovaSchedulerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaScheduler `json:"items"`
}
