package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// SharedConnections are the connections that all services of one control plane share, besides
// databases, message bus and account.
type SharedConnections struct {
	// openStackServices are the connections to other OpenStack services, where they differ
	// from the default: Nova's own account, the region of this account, and the internal
	// endpoint. An entry changes only what it states. A change restarts the services that call
	// the OpenStack service. A service that has no account of Nova calls only those with an
	// accountSecretRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=6
	OpenStackServices []OpenStackService `json:"openStackServices,omitempty"`

	// unifiedLimits lets Nova enforce the limits that are registered at Keystone. Default:
	// the quotas of Nova.
	// +optional
	UnifiedLimits *UnifiedLimits `json:"unifiedLimits,omitempty"`

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

// OpenStackServiceName is the name of an OpenStack service that Nova calls.
//
// +kubebuilder:validation:Enum=Barbican;Cinder;Glance;Ironic;Neutron;Placement
type OpenStackServiceName string

// Names of OpenStack services.
const (
	OpenStackBarbican  OpenStackServiceName = "Barbican"
	OpenStackCinder    OpenStackServiceName = "Cinder"
	OpenStackGlance    OpenStackServiceName = "Glance"
	OpenStackIronic    OpenStackServiceName = "Ironic"
	OpenStackNeutron   OpenStackServiceName = "Neutron"
	OpenStackPlacement OpenStackServiceName = "Placement"
)

// OpenStackService is the connection to an OpenStack service.
//
// +kubebuilder:validation:XValidation:rule="self.name != 'Glance' || !has(self.accountSecretRef)",message="must not have accountSecretRef for Glance: Glance is called with the token of the user"
// +kubebuilder:validation:XValidation:rule="self.name != 'Barbican' || !has(self.serviceType)",message="must not have serviceType for Barbican: its client has none"
type OpenStackService struct {
	// name is Barbican, Cinder, Glance, Ironic, Neutron or Placement. Nova uses Barbican and
	// Ironic only with an entry.
	// +required
	Name OpenStackServiceName `json:"name"`

	// accountSecretRef names the Secret of the account with which the service is called, with
	// the keys of an identity Secret. Default: the account of Nova.
	// +optional
	AccountSecretRef *commonv1.SecretReference `json:"accountSecretRef,omitempty"`

	// regionName of the endpoint in the catalog. Default: the region in the Secret of
	// accountSecretRef, or else that of Nova's account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-._A-Za-z0-9]*$`
	RegionName string `json:"regionName,omitempty"`

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

	// endpointOverride is the URL of the service, which replaces the endpoint in the catalog.
	// That of Cinder ends with /v3 or with /v3/%(project_id)s.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s/?#@]+(/[^\s?#]*)?$`
	EndpointOverride string `json:"endpointOverride,omitempty"`

	// endpointRevision restarts the pods that call the OpenStack service when it changes: they keep
	// the endpoint of the catalog as long as their tokens. Without one, the Nova sets it for its
	// services when it has seen another endpoint in the catalog.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-._A-Za-z0-9]*$`
	EndpointRevision string `json:"endpointRevision,omitempty"`
}

// UnifiedLimits is the connection to the limits at Keystone.
type UnifiedLimits struct {
	// accountSecretRef names the Secret of the account that reads the limits, with the keys of
	// an identity Secret. The account needs the role reader at the system scope. Default: the
	// account of Nova.
	// +optional
	AccountSecretRef *commonv1.SecretReference `json:"accountSecretRef,omitempty"`

	// endpointID is the ID of Nova's endpoint in the catalog, for which the limits are
	// registered.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9]+$`
	EndpointID string `json:"endpointID"`
}
