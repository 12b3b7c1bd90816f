package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// SharedConnections are the connections that all services of one control plane share, besides
// databases, message bus and account.
type SharedConnections struct {
	// neighbours are the other OpenStack services, where their account, region, interface,
	// service type or endpoint differs from the default. A change restarts the services. A
	// service that has no account of Nova has only the neighbours with a secretRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Neighbours []Neighbour `json:"neighbours,omitempty"`

	// memcachedSecretRef names the Secret with the connection to memcached, the cache for
	// tokens and for the data of Nova. Required key: hostname (or a list host[:port],...).
	// Optional keys: port (default 11211), ca.crt (required for TLS), tls. Tokens are stored
	// encrypted, and other data are not: only this Nova may reach the memcached. Over TLS,
	// tokens are cached with keystonemiddleware 10.12 or newer in the image. Default: each
	// process has a cache of its own.
	// +optional
	MemcachedSecretRef *commonv1.SecretReference `json:"memcachedSecretRef,omitempty"`

	// notificationBusSecretRef names the Secret with the connection to the message bus to
	// which the services send notifications, with the keys of a message bus. Default: the
	// services send no notifications.
	// +optional
	NotificationBusSecretRef *commonv1.SecretReference `json:"notificationBusSecretRef,omitempty"`
}

// NeighbourName is the name of an OpenStack service that other services call, or
// UnifiedLimits for the limits at Keystone.
//
// +kubebuilder:validation:Enum=Barbican;Cinder;Glance;Ironic;Neutron;Placement;UnifiedLimits
type NeighbourName string

// Names of neighbours.
const (
	NeighbourBarbican      NeighbourName = "Barbican"
	NeighbourCinder        NeighbourName = "Cinder"
	NeighbourGlance        NeighbourName = "Glance"
	NeighbourIronic        NeighbourName = "Ironic"
	NeighbourNeutron       NeighbourName = "Neutron"
	NeighbourPlacement     NeighbourName = "Placement"
	NeighbourUnifiedLimits NeighbourName = "UnifiedLimits"
)

// Neighbour is the connection to another OpenStack service.
//
// +kubebuilder:validation:XValidation:rule="self.name != 'Glance' || !has(self.secretRef)",message="must not have secretRef for Glance: Glance is called with the token of the user"
// +kubebuilder:validation:XValidation:rule="(self.name == 'UnifiedLimits') == has(self.endpointID)",message="must have endpointID for UnifiedLimits and for no other name: the limits are registered for an endpoint"
// +kubebuilder:validation:XValidation:rule="self.name != 'UnifiedLimits' || !has(self.serviceType) && !has(self.endpoint) && !has(self.region) && !has(self.interface)",message="must have no serviceType, endpoint, region or interface for UnifiedLimits: the limits are at the Keystone of the account"
// +kubebuilder:validation:XValidation:rule="self.name != 'Barbican' || !has(self.serviceType)",message="must not have serviceType for Barbican: its client has none"
type Neighbour struct {
	// name is Barbican, Cinder, Glance, Ironic, Neutron, Placement, or UnifiedLimits to
	// enforce the limits at Keystone instead of Nova's quotas.
	// +required
	Name NeighbourName `json:"name"`

	// secretRef names the Secret of the account with which the service is called, with the
	// keys of an identity Secret. The account of UnifiedLimits needs the role reader at the
	// system scope. Default: the account of the services.
	// +optional
	SecretRef *commonv1.SecretReference `json:"secretRef,omitempty"`

	// region of the endpoint in the catalog. Default: the region of the account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-._A-Za-z0-9]*$`
	Region string `json:"region,omitempty"`

	// interface of the endpoint in the catalog: Public or Internal. Default: Internal.
	// +optional
	Interface commonv1.EndpointInterface `json:"interface,omitempty"`

	// serviceType of the endpoint in the catalog. Default: image, volumev3, baremetal,
	// network or placement.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][-_a-z0-9]*$`
	ServiceType string `json:"serviceType,omitempty"`

	// endpoint is the URL of the service, which replaces the endpoint in the catalog. That of
	// Cinder ends with /v3 or with /v3/%(project_id)s.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s/?#@]+(/[^\s?#]*)?$`
	Endpoint string `json:"endpoint,omitempty"`

	// endpointID is the ID of Nova's endpoint in the catalog, for which the limits at Keystone
	// are registered.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9]+$`
	EndpointID string `json:"endpointID,omitempty"`
}
