package v1alpha1

// ExposureType is the kind of object through which clients outside of the cluster reach a
// service.
// +kubebuilder:validation:Enum=Automatic;Route;Ingress;Gateway;LoadBalancer;None
type ExposureType string

const (
	// ExposureAutomatic makes a Route where the API server serves Routes.
	ExposureAutomatic ExposureType = "Automatic"
	// ExposureRoute makes a Route and waits where Routes are not served.
	ExposureRoute ExposureType = "Route"
	// ExposureIngress makes an Ingress.
	ExposureIngress ExposureType = "Ingress"
	// ExposureGateway makes an HTTPRoute and waits where HTTPRoutes are not served.
	ExposureGateway ExposureType = "Gateway"
	// ExposureLoadBalancer makes a Service of type LoadBalancer.
	ExposureLoadBalancer ExposureType = "LoadBalancer"
	// ExposureNone leaves the service reachable inside the cluster only.
	ExposureNone ExposureType = "None"
)

// Exposure says how clients outside of the cluster reach a service.
//
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Ingress', 'Gateway']) || has(self.hostname)",message="must have hostname: an Ingress or a Gateway serves a service by its host name"
// +kubebuilder:validation:XValidation:rule="self.type in ['Route', 'Automatic', 'Ingress', 'Gateway'] || !has(self.hostname)",message="must have hostname for type Automatic, Route, Ingress or Gateway alone"
// +kubebuilder:validation:XValidation:rule="self.type in ['Route', 'Automatic', 'Ingress'] || !has(self.tlsSecretRef)",message="must have tlsSecretRef for type Automatic, Route or Ingress alone: a Gateway has certificates of its own, and a load balancer ends no TLS"
// +kubebuilder:validation:XValidation:rule="self.type == 'Ingress' || !has(self.ingressClassName)",message="must have ingressClassName for type Ingress alone"
// +kubebuilder:validation:XValidation:rule="self.type in ['Ingress', 'Gateway'] || !has(self.scheme)",message="must have scheme for type Ingress or Gateway alone: a Route has https, a load balancer http"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Gateway') == has(self.parentRef)",message="must have parentRef for type Gateway, and for no other: parentRef names the Gateway"
type Exposure struct {
	// type is Automatic (a Route where the cluster serves Routes, otherwise nothing),
	// Route, Ingress, Gateway (an HTTPRoute), LoadBalancer (a Service) or None. The
	// object of the former type is deleted when the type changes. Default: Automatic.
	// +optional
	// +kubebuilder:default=Automatic
	Type ExposureType `json:"type,omitempty"`

	// hostname of the public address. Default for a Route: the router chooses.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Hostname string `json:"hostname,omitempty"`

	// tlsSecretRef names the Secret of type kubernetes.io/tls with the certificate of
	// hostname. A Route needs OpenShift 4.19, whose router has to be allowed to read
	// the Secret. Default: the router's certificate for a Route, no TLS for an Ingress.
	// +optional
	TLSSecretRef *SecretReference `json:"tlsSecretRef,omitempty"`

	// scheme of the public address: HTTPS or HTTP. Default: HTTPS for a Gateway and for
	// an Ingress with tlsSecretRef, otherwise HTTP.
	// +optional
	Scheme Scheme `json:"scheme,omitempty"`

	// annotations of the object that is made, such as those of a load balancer.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// ingressClassName names the IngressClass. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	IngressClassName string `json:"ingressClassName,omitempty"`

	// parentRef names the Gateway. A Gateway of another namespace has to allow routes
	// of this namespace.
	// +optional
	ParentRef *GatewayReference `json:"parentRef,omitempty"`
}

// Scheme of an address.
// +kubebuilder:validation:Enum=HTTP;HTTPS
type Scheme string

const (
	// SchemeHTTP is http.
	SchemeHTTP Scheme = "HTTP"
	// SchemeHTTPS is https.
	SchemeHTTPS Scheme = "HTTPS"
)

// GatewayReference names a Gateway.
type GatewayReference struct {
	// name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Gateway. Default: the namespace of the service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// sectionName of one listener of the Gateway. Default: all listeners that take the
	// host name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}
