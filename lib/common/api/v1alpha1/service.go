package v1alpha1

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ServiceSpec has the first fields of the spec of every kind that stands for a service.
type ServiceSpec struct {
	Pause `json:",inline"`

	// containerImage is the image of the service, of its init container and of its Jobs.
	// Default: the default image of the operator, if the operator has one. A change restarts
	// the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	// replicas is the number of pods. Default: 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas *int32 `json:"replicas,omitempty"`

	// restartTriggers restart the pods when a key or a value changes. The operator does
	// not interpret keys and values. A key has at most 63 characters, a value at most 64.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63 && size(self[key]) <= 64)",message="must have keys of at most 63 and values of at most 64 characters: use a hash as the value"
	RestartTriggers map[string]string `json:"restartTriggers,omitempty"`

	// caFileRefs name keys of ConfigMaps with certificate authorities, in PEM, for URLs of
	// databases and message buses that the service reads from its database. Each becomes a file
	// with the name of the key in the service's configuration directory. The key ends in
	// -ca.crt. A change restarts the pods.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(file, file.key.endsWith('-ca.crt'))",message="must have keys that end in -ca.crt"
	CAFileRefs []KeyReference `json:"caFileRefs,omitempty"`

	ServiceSettings `json:",inline"`
}

// ServiceTemplate is a ServiceSpec inside the spec of a parent. The parent fills in
// absent fields. replicas has no default here: without a value, kubectl scale or an
// autoscaler owns the field.
type ServiceTemplate struct {
	// containerImage replaces the parent's containerImage for this service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	// replicas is the number of pods. Without a value, the service starts with 1 pod,
	// and kubectl scale or an autoscaler sets the number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas *int32 `json:"replicas,omitempty"`

	ServiceSettings `json:",inline"`
}

// ServiceDefaults are the settings that the services of a parent share. A service's own value
// replaces a default, unless the field says otherwise.
type ServiceDefaults struct {
	// replicas is the default number of pods of each service that can have several. With a
	// value, kubectl scale and autoscalers have no effect on any of them. Without a value here
	// or in the service, a service starts with 1 pod, and kubectl scale or an autoscaler sets
	// the number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Replicas *int32 `json:"replicas,omitempty"`

	// resources are the requests and limits of the container of each service without
	// resources of its own.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="must not have claims: the pods get no devices"
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// customServiceConfig is an oslo.config snippet that every service reads before its own
	// customServiceConfig, for example "[DEFAULT]" and "debug = true". A change restarts the
	// pods of every service.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// pod has the pod settings of every service. A service that states a setting replaces
	// the default; labels and annotations are added by key.
	// +optional
	Pod PodSettings `json:"pod,omitzero"`
}

// ServiceSettings are the common fields of ServiceSpec and ServiceTemplate.
type ServiceSettings struct {
	// resources are the requests and limits of the service's container. A change restarts the
	// pods. Default: requests of 10m CPU and, for each process, of 128Mi memory; no limits.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="must not have claims: the pods get no devices"
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// customServiceConfig is an oslo.config snippet that the service reads after the
	// defaults of the operator. Options that the operator owns (connections to
	// database, message bus and identity) are refused. A change restarts the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=20480
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// customServiceConfigSecretRefs name Secrets with oslo.config snippets that contain
	// secrets. Every key of a Secret is a snippet. The service reads the Secrets after
	// customServiceConfig, in the order of this list, and the keys of a Secret in the order
	// of their names. The same options are refused. A change of a Secret restarts the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(secret, size(secret.name) <= 200)",message="must have names of at most 200 characters: a file in the pods is named after each Secret"
	CustomServiceConfigSecretRefs []SecretReference `json:"customServiceConfigSecretRefs,omitempty"`

	// extraFiles are further files in the service's configuration directory, for
	// example policy.yaml or api-paste.ini. A change restarts the pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ExtraFiles []ExtraFile `json:"extraFiles,omitempty"`

	// probes replace settings of the probes.
	// +optional
	Probes Probes `json:"probes,omitzero"`

	// pod configures labels, annotations, scheduling, image pull Secrets and the NetworkPolicy
	// of the pods.
	// +optional
	Pod PodSettings `json:"pod,omitzero"`
}

// ExtraFile is one file in the configuration directory. It has exactly one source.
//
// +kubebuilder:validation:XValidation:rule="[has(self.content), has(self.configMapKeyRef), has(self.secretKeyRef)].exists_one(s, s)",message="must have exactly one of content, configMapKeyRef and secretKeyRef"
type ExtraFile struct {
	// name of the file in the service's configuration directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-._a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.conf') || self in ['api_audit_map.conf', 'logging.conf', 'rootwrap.conf']",message="must not end in .conf, except api_audit_map.conf, logging.conf and rootwrap.conf: options belong in customServiceConfig"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.effective')",message="must not end in .effective: the operator uses these names"
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('.conf.d') && !self.endsWith('-ca.crt')",message="must not end in .conf.d or -ca.crt: the operator uses these names"
	Name string `json:"name"`

	// content of the file. It is stored in a ConfigMap: use secretKeyRef for a secret.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Content *string `json:"content,omitempty"`

	// configMapKeyRef names the key of a ConfigMap that has the content.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef names the key of a Secret that has the content.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
}

// PodSettings are the settings of a pod that do not depend on the service. An absent field
// inherits the parent's value, an empty list or nodeSelector replaces it. Labels and
// annotations are added to the parent's, by key.
type PodSettings struct {
	// nodeSelector restricts the nodes by label. {} allows all nodes, even if the
	// parent has a nodeSelector.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitzero"`

	// tolerations let the pods run on tainted nodes. [] tolerates no taint, even if the
	// parent has tolerations.
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

	// topologySpreadConstraints spread the pods over zones or nodes. A constraint without
	// labelSelector counts the pods of the service. [] has no constraints, even if the parent
	// has topologySpreadConstraints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitzero"`

	// labels of the pods, in addition to the labels of the operator and of the parent. A key
	// has at most 317 characters, a value at most 63.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && size(self[key]) <= 63 && !key.startsWith('app.kubernetes.io/') && !key.startsWith('asterism.dev/'))",message="must have keys that do not begin with app.kubernetes.io/ or asterism.dev/, and values of at most 63 characters: the operator finds its pods by labels with these keys"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pods, in addition to those of the parent. A key has at most 317
	// characters, a value at most 4096. networkAttachments replaces the annotation
	// k8s.v1.cni.cncf.io/networks.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && size(self[key]) <= 4096 && !key.startsWith('asterism.dev/'))",message="must have keys that do not begin with asterism.dev/, and values of at most 4096 characters: the operator uses these keys"
	Annotations map[string]string `json:"annotations,omitempty"`

	// imagePullSecrets name the Secrets with which images are pulled. [] means no Secret,
	// even if the parent has imagePullSecrets.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitzero"`

	// trustedCARef names a key of a ConfigMap with the certificate authorities, in PEM, that
	// every process of the pods trusts, for example a ConfigMap into which OpenShift injects
	// its bundle. It replaces the authorities of the image. The key ca.crt of a connection
	// Secret is used instead for its connection. A change restarts the pods.
	// +optional
	TrustedCARef *KeyReference `json:"trustedCARef,omitempty"`

	// networkAttachments are NetworkAttachmentDefinitions of this namespace: Multus attaches
	// the pods to their networks. A service with a port also listens there, and the
	// NetworkPolicy does not apply there. [] attaches no network, even if the parent has
	// networkAttachments. Pods with the network of their node (computes with driver Libvirt)
	// are not attached. A change restarts the pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	NetworkAttachments []ObjectReference `json:"networkAttachments,omitzero"`

	// networkPolicy is Enabled or Disabled. Default: Enabled. Enabled creates a
	// NetworkPolicy that allows connections to the HTTP port of the service, if it has
	// one, and to no other port of the pods. Disabled deletes the NetworkPolicy.
	// +optional
	NetworkPolicy NetworkPolicyMode `json:"networkPolicy,omitempty"`
}

// NetworkPolicyMode determines whether pods have a NetworkPolicy.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type NetworkPolicyMode string

// Modes of NetworkPolicies.
const (
	NetworkPolicyEnabled  NetworkPolicyMode = "Enabled"
	NetworkPolicyDisabled NetworkPolicyMode = "Disabled"
)

// ServiceStatus has the first fields of the status of every kind that stands for a
// service.
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

	// selector is the label selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector string `json:"selector,omitempty"`

	// configHash is the hash of the configuration of the newest revision of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// networkAttachments lists the networks of spec.pod.networkAttachments, with the addresses
	// of the pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	NetworkAttachments []NetworkAttachmentStatus `json:"networkAttachments,omitempty"`
}

// MaxNetworkAddresses is the greatest number of addresses of a NetworkAttachmentStatus.
const MaxNetworkAddresses = 128

// NetworkAttachmentStatus is a network of Multus, and the addresses of the pods in it.
type NetworkAttachmentStatus struct {
	// name of the NetworkAttachmentDefinition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// addresses are the IP addresses of the pods in this network, as Multus reports them in
	// the annotation k8s.v1.cni.cncf.io/network-status of each pod. At most 128 are listed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=45
	Addresses []string `json:"addresses,omitempty"`
}

// Spec completes the template with the parent's image and defaults.
func (t ServiceTemplate) Spec(containerImage string, defaults ServiceDefaults) ServiceSpec {
	completed := t.WithDefaults(containerImage, defaults)
	return ServiceSpec{
		ContainerImage:  completed.ContainerImage,
		Replicas:        completed.Replicas,
		ServiceSettings: completed.ServiceSettings,
	}
}

// WithDefaults completes the template like Spec, for a child whose spec embeds a
// template.
func (t ServiceTemplate) WithDefaults(containerImage string, defaults ServiceDefaults) ServiceTemplate {
	completed, parent := *t.DeepCopy(), *defaults.DeepCopy()
	completed.ContainerImage = cmp.Or(completed.ContainerImage, containerImage)
	completed.Replicas = cmp.Or(completed.Replicas, parent.Replicas)
	if completed.Resources.Limits == nil && completed.Resources.Requests == nil {
		completed.Resources = parent.Resources
	}
	completed.CustomServiceConfig = after(parent.CustomServiceConfig, completed.CustomServiceConfig)
	completed.Pod = completed.Pod.withDefaults(parent.Pod)
	return completed
}

// after returns both snippets, of which oslo.config uses the last value of an option. A snippet
// that does not begin with a section stays alone: its options would become options of the
// parent's last section, and the service refuses it.
func after(parent, snippet string) string {
	if parent == "" || snippet == "" {
		return parent + snippet
	}
	for line := range strings.Lines(snippet) {
		if strings.TrimSpace(line) == "" || strings.ContainsAny(line[:1], "#;") {
			continue
		}
		if line[0] != '[' {
			return snippet
		}
		break
	}
	return parent + "\n" + snippet
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
	if p.TopologySpreadConstraints == nil {
		p.TopologySpreadConstraints = parent.TopologySpreadConstraints
	}
	p.Labels = merged(parent.Labels, p.Labels)
	p.Annotations = merged(parent.Annotations, p.Annotations)
	if p.ImagePullSecrets == nil {
		p.ImagePullSecrets = parent.ImagePullSecrets
	}
	if p.TrustedCARef == nil {
		p.TrustedCARef = parent.TrustedCARef
	}
	if p.NetworkAttachments == nil {
		p.NetworkAttachments = parent.NetworkAttachments
	}
	if p.NetworkPolicy == "" {
		p.NetworkPolicy = parent.NetworkPolicy
	}
	return p
}

// merged adds the entries of a service to those of its parent.
func merged(parent, own map[string]string) map[string]string {
	if len(parent) == 0 {
		return own
	}
	maps.Copy(parent, own)
	return parent
}
