package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Condition types of the stages, besides Ready and Stalled.
const (
	// ConditionInputsReady is True when the compute Secret of the cell, the Secret of the
	// driver, and the Secrets and ConfigMaps of extraFiles exist and have the required keys.
	ConditionInputsReady = commonv1.ConditionInputsReady
	// ConditionConfigReady is True when the configuration is accepted, and its ConfigMaps
	// and its Secret are applied.
	ConditionConfigReady = commonv1.ConditionConfigReady
	// ConditionWorkloadReady is True when the pod runs the newest revision and is available.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
)

// NovaComputeConditions are the condition types of the stages, in their order.
var NovaComputeConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionWorkloadReady,
}

// NovaCompute runs nova-compute for one cell. The name of the object is the name of the host in
// Nova; with driver Libvirt, each node is a host with the name of the node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=novacomputes,scope=Namespaced,shortName=ncomp,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 52 lower-case letters, digits and '-', begin with a letter and not end with '-': the pod and the host are named after it"
type NovaCompute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaComputeSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaComputeStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (c *NovaCompute) Common() *commonv1.Status { return &c.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (c *NovaCompute) IsPaused() bool { return c.Spec.Paused }

// ServiceStatus returns the part of the status that describes the pod.
func (c *NovaCompute) ServiceStatus() *commonv1.ServiceStatus { return &c.Status.ServiceStatus }

// NovaComputeSpec is the desired state of a NovaCompute.
type NovaComputeSpec struct {
	commonv1.Pause `json:",inline"`

	sharedv1.ComputeSettings `json:",inline"`

	// computeConfigSecretRef names the compute Secret of the cell. A NovaCell creates it,
	// and names it in status.computeConfigSecretRef. Required key: 50-connections.conf.
	// Optional keys: messagebus-ca.crt, identity-ca.crt, region (of the compute API, which the
	// removal of the compute calls; default: the region of Placement in the configuration).
	// +required
	ComputeConfigSecretRef commonv1.SecretReference `json:"computeConfigSecretRef"`

	// containerImage is the image of the compute and of its init container. Default: the
	// default image of the operator, if the operator has one. A change restarts the pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	commonv1.ServiceSettings `json:",inline"`
}

// NovaComputeStatus is the observed state of a NovaCompute.
type NovaComputeStatus struct {
	commonv1.ServiceStatus `json:",inline"`

	// hosts are the names of the compute's hosts in Nova: the name of the compute or, with driver
	// Libvirt, of each node with a pod, at most 5000.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts,omitempty"`
}

// MaxHosts is the number of names in the status of a NovaCompute.
const MaxHosts = 5000

// NovaComputeList is a list of NovaComputes.
//
// +kubebuilder:object:root=true
type NovaComputeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaCompute `json:"items"`
}
