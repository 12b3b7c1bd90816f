package v1alpha1

// EndpointInterface is the interface of an endpoint in OpenStack's catalog.
// +kubebuilder:validation:Enum=Public;Internal
type EndpointInterface string

const (
	// InterfacePublic is the interface for users.
	InterfacePublic EndpointInterface = "Public"
	// InterfaceInternal is the interface for other services.
	InterfaceInternal EndpointInterface = "Internal"
)

// Endpoint is an address at which a service is reached.
type Endpoint struct {
	// interface is Public (for users) or Internal (for other services).
	// +required
	Interface EndpointInterface `json:"interface"`

	// url has the scheme, the host, the port unless it is the default of the scheme,
	// and the path.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s/?#@]+(/[^\s?#]*)?$`
	URL string `json:"url"`
}

// URLOf returns the address for an interface, "" if there is none.
func URLOf(endpoints []Endpoint, wanted EndpointInterface) string {
	for _, endpoint := range endpoints {
		if endpoint.Interface == wanted {
			return endpoint.URL
		}
	}
	return ""
}
