package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ServiceSpec is what the spec of every service's own kind starts with.
type ServiceSpec struct {
	// containerImage runs the service, its init container and its Jobs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage"`

	// replicas is the number of pods.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas *int32 `json:"replicas,omitempty"`

	// restartTriggers restart the pods when a value changes; keys and values
	// have no other meaning. A key has at most 63 characters, a value 64.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63 && size(self[key]) <= 64)",message="must have keys of at most 63 and values of at most 64 characters: put the hash of what changed as the value"
	RestartTriggers map[string]string `json:"restartTriggers,omitempty"`

	ServiceSettings `json:",inline"`
}

// ServiceTemplate is a ServiceSpec inside the spec of a parent, who fills in
// what is left out. It has no default for replicas: what is not stated stays
// with kubectl scale or an autoscaler.
type ServiceTemplate struct {
	// containerImage replaces the parent's containerImage for this service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	// replicas is the number of pods. Absent: it starts at 1 and is left to
	// kubectl scale or an autoscaler.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas *int32 `json:"replicas,omitempty"`

	ServiceSettings `json:",inline"`
}

// ServiceSettings are the settings that a service's own kind and a parent's
// template have in common.
type ServiceSettings struct {
	// resources are the requests and limits of the service's container. A change
	// restarts the pods.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="must not have claims: the pods get no devices"
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// customServiceConfig is an oslo.config snippet that is read after the
	// operator's defaults. Options that the operator owns (connections to
	// database, message bus and identity) are refused.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// extraFiles are placed beside the configuration, for example policy.yaml
	// or api-paste.ini.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ExtraFiles []ExtraFile `json:"extraFiles,omitempty"`

	// pod says where and with what rights to pull images the pods run.
	// +optional
	Pod PodSettings `json:"pod,omitzero"`
}

// ExtraFile is one file beside the configuration; exactly one source is given.
//
// +kubebuilder:validation:XValidation:rule="[has(self.content), has(self.configMapKeyRef), has(self.secretKeyRef)].exists_one(s, s)",message="must have exactly one of content, configMapKeyRef and secretKeyRef"
type ExtraFile struct {
	// name of the file in the service's configuration directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-._a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.conf') && !self.endsWith('.effective')",message="must not end in .conf or .effective: options belong in customServiceConfig"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.conf.d') && !self.endsWith('-ca.crt')",message="must not end in .conf.d or -ca.crt: the configuration has a directory and files of its own that are named so"
	Name string `json:"name"`

	// content of the file; never a secret.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Content *string `json:"content,omitempty"`

	// configMapKeyRef takes the content from a ConfigMap.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef takes the content from a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
}

// PodSettings are the settings of a pod that have nothing to do with what runs in it.
// A map or a list that is empty replaces the parent's, so it is not left out.
type PodSettings struct {
	// nodeSelector restricts the nodes by label. {} restricts nothing, also where the
	// parent restricts.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitzero"`

	// tolerations let the pods run on tainted nodes. [] tolerates nothing, also where
	// the parent tolerates.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`

	// affinity replaces the default, which prefers different nodes for the pods
	// of one service.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// priorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets name the Secrets with which images are pulled. [] names none,
	// also where the parent names some.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitzero"`

	// networkPolicy is Enabled or Disabled. Enabled, which is the default: a
	// NetworkPolicy lets connections in to the ports of nova-api and nova-metadata,
	// and to no other port of the pods. Disabled: there is no NetworkPolicy.
	// +optional
	NetworkPolicy NetworkPolicyMode `json:"networkPolicy,omitempty"`
}

// NetworkPolicyMode says whether pods have a NetworkPolicy.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type NetworkPolicyMode string

// Modes of NetworkPolicies.
const (
	NetworkPolicyEnabled  NetworkPolicyMode = "Enabled"
	NetworkPolicyDisabled NetworkPolicyMode = "Disabled"
)

// ServiceStatus is what the status of every service's own kind starts with.
type ServiceStatus struct {
	Status `json:",inline"`

	// replicas is the number of pods that exist.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector finds the pods; the scale subresource serves it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector string `json:"selector,omitempty"`

	// configHash is the hash of the configuration that the newest revision of
	// the pods reads.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`
}

// Spec completes the template with what the parent says for all its services:
// its image where the template has none, and each pod setting that the template
// leaves out.
func (t ServiceTemplate) Spec(containerImage string, pod PodSettings) ServiceSpec {
	completed := t.WithDefaults(containerImage, pod)
	return ServiceSpec{
		ContainerImage:  completed.ContainerImage,
		Replicas:        completed.Replicas,
		ServiceSettings: completed.ServiceSettings,
	}
}

// WithDefaults completes the template like Spec, for a child that embeds a
// template itself.
func (t ServiceTemplate) WithDefaults(containerImage string, pod PodSettings) ServiceTemplate {
	completed := *t.DeepCopy()
	if completed.ContainerImage == "" {
		completed.ContainerImage = containerImage
	}
	completed.Pod = completed.Pod.withDefaults(*pod.DeepCopy())
	return completed
}

func (p PodSettings) withDefaults(parent PodSettings) PodSettings {
	if p.NodeSelector == nil {
		p.NodeSelector = parent.NodeSelector
	}
	if p.Tolerations == nil {
		p.Tolerations = parent.Tolerations
	}
	if p.Affinity == nil {
		p.Affinity = parent.Affinity
	}
	if p.PriorityClassName == "" {
		p.PriorityClassName = parent.PriorityClassName
	}
	if p.ImagePullSecrets == nil {
		p.ImagePullSecrets = parent.ImagePullSecrets
	}
	if p.NetworkPolicy == "" {
		p.NetworkPolicy = parent.NetworkPolicy
	}
	return p
}
