package v1alpha1

// EndpointInterface is the audience of an endpoint, as in OpenStack's catalog.
// +kubebuilder:validation:Enum=Public;Internal
type EndpointInterface string

const (
	// InterfacePublic is for users.
	InterfacePublic EndpointInterface = "Public"
	// InterfaceInternal is for other services.
	InterfaceInternal EndpointInterface = "Internal"
)

// Endpoint is an address at which a service is reached.
type Endpoint struct {
	// interface is the audience: Public or Internal.
	// +required
	Interface EndpointInterface `json:"interface"`

	// url with scheme, host, port where it is not the scheme's own, and path.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s/?#@]+(/[^\s?#]*)?$`
	URL string `json:"url"`
}
