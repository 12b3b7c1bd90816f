// Package multus has the contract between pods and the additional networks of Multus: the
// Kubernetes Network Custom Resource Definition De-facto Standard, version 1.3.
package multus

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of a pod.
const (
	// AnnotationNetworks lists the networks to which Multus attaches the pod.
	AnnotationNetworks = "k8s.v1.cni.cncf.io/networks"
	// AnnotationStatus has the networks to which Multus has attached the pod, in JSON.
	AnnotationStatus = "k8s.v1.cni.cncf.io/network-status"
)

var groupVersion = schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}

// NetworkAttachmentDefinition has the name of a network, without its configuration.
type NetworkAttachmentDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DeepCopyObject returns a copy.
func (n *NetworkAttachmentDefinition) DeepCopyObject() runtime.Object {
	return &NetworkAttachmentDefinition{TypeMeta: n.TypeMeta, ObjectMeta: *n.DeepCopy()}
}

// NetworkAttachmentDefinitionList is a list.
type NetworkAttachmentDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NetworkAttachmentDefinition `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *NetworkAttachmentDefinitionList) DeepCopyObject() runtime.Object {
	copied := &NetworkAttachmentDefinitionList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy(), Items: slices.Clone(l.Items)}
	for i := range copied.Items {
		copied.Items[i].ObjectMeta = *l.Items[i].DeepCopy()
	}
	return copied
}

// AddToScheme registers the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(groupVersion, &NetworkAttachmentDefinition{}, &NetworkAttachmentDefinitionList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

// Networks returns the value of AnnotationNetworks for networks of the pod's namespace.
func Networks(names ...string) string { return strings.Join(names, ",") }

// Attached returns the IP addresses of a pod in a network of its namespace, and false if the
// pod is not attached to the network. A network on layer 2 has no addresses. An annotation
// that cannot be read has no networks: whoever may change pods can write the annotation.
func Attached(pod metav1.Object, network string) (addresses []string, attached bool) {
	var networks []struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
	}
	if json.Unmarshal([]byte(pod.GetAnnotations()[AnnotationStatus]), &networks) != nil {
		return nil, false
	}
	for _, known := range networks {
		if known.Name != network && known.Name != pod.GetNamespace()+"/"+network {
			continue
		}
		attached = true
		for _, address := range known.IPs {
			if ip, err := netip.ParseAddr(address); err == nil {
				addresses = append(addresses, ip.WithZone("").String())
			}
		}
	}
	return addresses, attached
}
