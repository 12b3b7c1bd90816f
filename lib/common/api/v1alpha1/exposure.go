package v1alpha1

// ExposureType is the kind of object through which clients outside the cluster reach a
// service.
// +kubebuilder:validation:Enum=Automatic;Route;Ingress;Gateway;LoadBalancer;None
type ExposureType string

const (
	// ExposureAutomatic creates a Route if the API server serves Routes.
	ExposureAutomatic ExposureType = "Automatic"
	// ExposureRoute creates a Route. The operator waits while Routes are not served.
	ExposureRoute ExposureType = "Route"
	// ExposureIngress creates an Ingress.
	ExposureIngress ExposureType = "Ingress"
	// ExposureGateway creates an HTTPRoute. The operator waits while HTTPRoutes are not
	// served.
	ExposureGateway ExposureType = "Gateway"
	// ExposureLoadBalancer creates a Service of type LoadBalancer.
	ExposureLoadBalancer ExposureType = "LoadBalancer"
	// ExposureNone makes the service reachable only inside the cluster.
	ExposureNone ExposureType = "None"
)

// Exposure configures how clients outside the cluster reach a service.
//
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Ingress', 'Gateway']) || has(self.hostname)",message="must have hostname: an Ingress or a Gateway selects a service by host name"
// +kubebuilder:validation:XValidation:rule="self.type in ['Route', 'Automatic', 'Ingress', 'Gateway'] || !has(self.hostname)",message="must have hostname only for type Automatic, Route, Ingress or Gateway"
// +kubebuilder:validation:XValidation:rule="self.type in ['Route', 'Automatic', 'Ingress'] || !has(self.tlsSecretRef)",message="must have tlsSecretRef only for type Automatic, Route or Ingress: a Gateway has its own certificates, and a load balancer does not terminate TLS"
// +kubebuilder:validation:XValidation:rule="self.type == 'Ingress' || !has(self.ingressClassName)",message="must have ingressClassName only for type Ingress"
// +kubebuilder:validation:XValidation:rule="self.type in ['Ingress', 'Gateway'] || !has(self.scheme)",message="must have scheme only for type Ingress or Gateway: a Route uses https, a load balancer http"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Gateway') == has(self.parentRef)",message="must have parentRef for type Gateway and for no other type: parentRef names the Gateway"
type Exposure struct {
	// type is Automatic (a Route where the cluster serves Routes, otherwise nothing),
	// Route, Ingress, Gateway (an HTTPRoute), LoadBalancer (a Service) or None. Default:
	// Automatic. When the type changes, the object of the former type is deleted.
	// +optional
	// +kubebuilder:default=Automatic
	Type ExposureType `json:"type,omitempty"`

	// hostname of the public address. Default for a Route: a host name of the router.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Hostname string `json:"hostname,omitempty"`

	// tlsSecretRef names the Secret of type kubernetes.io/tls with the certificate for
	// hostname. Default: the router's certificate for a Route, no TLS for an Ingress. A
	// Route needs OpenShift 4.19, and its router needs the right to read the Secret.
	// +optional
	TLSSecretRef *SecretReference `json:"tlsSecretRef,omitempty"`

	// scheme of the public address: HTTPS or HTTP. Default: HTTPS for a Gateway and for
	// an Ingress with tlsSecretRef, otherwise HTTP.
	// +optional
	Scheme Scheme `json:"scheme,omitempty"`

	// annotations of the Route, Ingress, HTTPRoute or Service, for example for a load
	// balancer.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// ingressClassName names the IngressClass. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	IngressClassName string `json:"ingressClassName,omitempty"`

	// parentRef names the Gateway. A Gateway in another namespace must allow routes from
	// this namespace.
	// +optional
	ParentRef *GatewayReference `json:"parentRef,omitempty"`
}

// Scheme is the scheme of an address.
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
	// name is the name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Gateway. Default: the namespace of the service.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// sectionName is the name of one listener of the Gateway. Default: all listeners
	// that accept the host name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}
