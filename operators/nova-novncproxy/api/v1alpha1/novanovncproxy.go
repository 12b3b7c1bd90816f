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
	// ConditionWorkloadReady is True when all pods run the newest revision and are available.
	ConditionWorkloadReady = commonv1.ConditionWorkloadReady
	// ConditionEndpointReady is True when the object that exposes the proxy is admitted, or
	// no object exposes the proxy.
	ConditionEndpointReady = commonv1.ConditionEndpointReady
)

// NovaNoVNCProxyConditions are the condition types of the stages, in their order.
var NovaNoVNCProxyConditions = []string{
	ConditionInputsReady,
	ConditionConfigReady,
	ConditionWorkloadReady,
	ConditionEndpointReady,
}

// NovaNoVNCProxy runs the console proxy of a cell: browsers reach the screens of servers
// through its page. The computes of the cell must name the page in their configuration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=novanovncproxies,scope=Namespaced,shortName=nvnc,categories=openstack
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Public",type=string,JSONPath=`.status.endpoints[?(@.interface=="Public")].url`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 51 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 51 lower-case letters, digits and '-', begin with a letter and not end with '-': pods and Services are named after it"
type NovaNoVNCProxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	// +required
	Spec NovaNoVNCProxySpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status NovaNoVNCProxyStatus `json:"status,omitzero"`
}

// Common returns the part of the status that the engine writes.
func (p *NovaNoVNCProxy) Common() *commonv1.Status { return &p.Status.Status }

// IsPaused tells whether the operator changes nothing of the object.
func (p *NovaNoVNCProxy) IsPaused() bool { return p.Spec.Paused }

// ServiceStatus returns the part of the status that the scale subresource reads.
func (p *NovaNoVNCProxy) ServiceStatus() *commonv1.ServiceStatus { return &p.Status.ServiceStatus }

// NovaNoVNCProxySpec is the desired state of a NovaNoVNCProxy.
type NovaNoVNCProxySpec struct {
	commonv1.ServiceSpec    `json:",inline"`
	sharedv1.ConsoleAddress `json:",inline"`

	// databaseSecretRef names the Secret with the connection to the database of the cell,
	// which has the tokens of the consoles. Required keys: hostname, user, password. Optional
	// keys: port (default 3306), database (default nova), ca.crt (required for TLS), tls.
	// +required
	DatabaseSecretRef commonv1.SecretReference `json:"databaseSecretRef"`

	// messageBusSecretRef names the Secret with the connection to the message bus of the
	// cell, through which the proxy asks a compute for the port of a console.
	// Required keys: hostname (or a list host[:port],...), user, password. Optional
	// keys: port (default 5672, with TLS 5671), vhost (default /), ca.crt (required
	// for TLS), tls, quorumQueues and transientQuorumQueues (default false).
	// +required
	MessageBusSecretRef commonv1.SecretReference `json:"messageBusSecretRef"`
}

// NovaNoVNCProxyStatus is the observed state of a NovaNoVNCProxy.
type NovaNoVNCProxyStatus struct {
	commonv1.ServiceStatus `json:",inline"`

	// endpoints are the addresses of the page for browsers: [vnc] novncproxy_base_url of the
	// computes is Public. Internal is the address of the Service. Public is the address of
	// the object that exposes the proxy, or of the Service if no object exposes the proxy.
	// Until a new object is admitted, the former Public stays.
	// +optional
	// +listType=map
	// +listMapKey=interface
	// +kubebuilder:validation:MaxItems=2
	Endpoints []commonv1.Endpoint `json:"endpoints,omitempty"`
}

// NovaNoVNCProxyList is a list of NovaNoVNCProxies.
//
// +kubebuilder:object:root=true
type NovaNoVNCProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []NovaNoVNCProxy `json:"items"`
}
