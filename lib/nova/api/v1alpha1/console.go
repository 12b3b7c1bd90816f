package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// ConsoleAddress configures how browsers reach a console proxy.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.tlsSecretRef) && has(self.exposure) && has(self.exposure.tlsSecretRef) && self.exposure.type in ['Automatic', 'Route'])",message="must not have tlsSecretRef together with exposure.tlsSecretRef for a Route: if the proxy serves TLS, the router passes it through and needs no certificate"
type ConsoleAddress struct {
	// exposure defines how browsers reach the proxy. Default: type Automatic. A Route gets
	// the annotation haproxy.router.openshift.io/timeout-tunnel: 8h, unless annotations have
	// it. A change updates or replaces the object that exposes the proxy, and restarts no pods
	// of the proxy.
	// +optional
	// +kubebuilder:default={type: Automatic}
	Exposure commonv1.Exposure `json:"exposure,omitzero"`

	// tlsSecretRef names the Secret of type kubernetes.io/tls with the certificate for the
	// public host. With it the proxy serves TLS itself and accepts no other connections, and
	// a Route passes TLS through to it. An Ingress or a Gateway must connect to the proxy by
	// TLS, which its controller configures. Default: the proxy serves HTTP. A change restarts
	// the pods.
	// +optional
	TLSSecretRef *commonv1.SecretReference `json:"tlsSecretRef,omitempty"`
}
