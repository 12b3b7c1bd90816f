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
)

// NovaSchedulerConditions are the condition types of the stages, in their order.
var NovaSchedulerConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionWorkloadReady,
}

// NovaScheduler runs nova-scheduler, which chooses a host for every server.
// It asks Placement with the account of identitySecretRef.
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

	// spec is what is wanted.
	// +required
	Spec NovaSchedulerSpec `json:"spec"`

	// status is what was observed.
	// +optional
	Status NovaSchedulerStatus `json:"status,omitzero"`
}

// Common gives the engine the part of the status that it writes.
func (s *NovaScheduler) Common() *commonv1.Status { return &s.Status.Status }

// ServiceStatus is the part of the status that the scale subresource reads.
func (s *NovaScheduler) ServiceStatus() *commonv1.ServiceStatus { return &s.Status.ServiceStatus }

// NovaSchedulerSpec is what is wanted of a NovaScheduler.
type NovaSchedulerSpec struct {
	commonv1.ServiceSpec `json:",inline"`
	commonv1.Connections `json:",inline"`
}

// NovaSchedulerStatus is what was observed of a NovaScheduler.
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
