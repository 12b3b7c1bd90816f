package v1alpha1

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"
)

// CellName is the name of a cell. The names of the objects of the Nova itself begin with the
// reserved names.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
// +kubebuilder:validation:XValidation:rule="!self.matches('^(cell0|api|scheduler|metadata|conductor|superconductor|identity|messagebus)(-|$)')",message="must not be one of the reserved names cell0, api, scheduler, metadata, conductor, superconductor, identity, messagebus, nor begin with one and '-': call it cell1, for example"
type CellName string

// APIDatabaseAccess decides whether the conductor of a cell reaches the API database.
// +kubebuilder:validation:Enum=Enabled;Disabled
type APIDatabaseAccess string

const (
	// APIDatabaseAccessEnabled gives the cell's conductor the API database.
	APIDatabaseAccessEnabled APIDatabaseAccess = "Enabled"
	// APIDatabaseAccessDisabled gives the cell's conductor only the database of the cell.
	APIDatabaseAccessDisabled APIDatabaseAccess = "Disabled"
)

// Cell is one cell of a Nova.
type Cell struct {
	// name of the cell: at most 15 lower-case letters, digits and '-', beginning with a
	// letter. No cell may have the name of another cell, continued with '-'.
	// +required
	Name CellName `json:"name"`

	// uuid of a cell that is in the API database already, under another name or, as kolla-ansible
	// creates it, without a name. The cell gets the name of this entry. Default: the cell is found
	// by its name, or created.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	UUID string `json:"uuid,omitempty"`

	// apiDatabaseAccess lets the cell's conductor reach the API database: Enabled, or Disabled
	// for a cell that must not reach it. Without access, Nova makes no up-calls: the rules of
	// server groups are not checked again on the compute host. A change restarts the conductor.
	// Default: Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	APIDatabaseAccess APIDatabaseAccess `json:"apiDatabaseAccess,omitempty"`

	// scheduling of new servers in the cell: Enabled, or Disabled to place no new server in
	// the cell. Existing servers are not changed. A change restarts the scheduler. Default:
	// Enabled.
	// +optional
	// +kubebuilder:default=Enabled
	Scheduling CellScheduling `json:"scheduling,omitempty"`

	// metadataSecretRef names the Secret with key sharedSecret, with which the metadata
	// agents of the cell sign their requests to the cell's metadata service. Default: the
	// operator generates Secret <nova>-<cell>-metadata, if the cell has a metadata service.
	// +optional
	MetadataSecretRef *commonv1.SecretReference `json:"metadataSecretRef,omitempty"`

	// metadataExposure decides how metadata agents of Neutron outside the cluster reach the
	// cell's metadata service, if the cell has one. Default: as metadata.exposure of the Nova,
	// if that has no hostname.
	// +optional
	MetadataExposure *commonv1.Exposure `json:"metadataExposure,omitempty"`

	// database is the cell's own server, or the Secret of its own database. Default: a
	// database on the server of spec.database. A change moves the cell: the new database must
	// be a copy of the old one, see docs/guides/cells.md.
	// +optional
	Database *registrationv1.Connection `json:"database,omitempty"`

	// messageBus is the cell's own RabbitMQ, or the Secret of its own vhost. Default: a
	// vhost on the RabbitMQ of spec.messageBus. A change moves the cell: its services restart
	// with the new connection, and its compute hosts must read the compute Secret again.
	// +optional
	MessageBus *CellMessageBus `json:"messageBus,omitempty"`

	// conductor has the settings of the cell's conductor.
	// +optional
	Conductor commonv1.ServiceTemplate `json:"conductor,omitzero"`

	// noVNCProxy has the settings of the cell's console proxy, through which browsers reach
	// the screens of servers. Default: the cell has no consoles. A change of the address of
	// the proxy changes the compute Secret, and restarts the computes in this cluster.
	// +optional
	NoVNCProxy *CellNoVNCProxy `json:"noVNCProxy,omitempty"`

	// computes lists computes that run in this cluster, at most 32. The operator creates a
	// NovaCompute for each. Other computes register themselves with the compute Secret. A
	// compute that leaves the list runs while it has a server, and is removed after a minute
	// without one; until then, condition ComputesReady lists its servers, and it can be added
	// again.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Computes []Compute `json:"computes,omitempty"`
}

// CellNoVNCProxy has the settings of the console proxy of a cell.
type CellNoVNCProxy struct {
	commonv1.ServiceTemplate `json:",inline"`
	sharedv1.ConsoleAddress  `json:",inline"`
}

// WithDefaults completes the proxy with the image and the defaults of its Nova; nil stays nil.
func (p *CellNoVNCProxy) WithDefaults(containerImage string, defaults commonv1.ServiceDefaults) *CellNoVNCProxy {
	if p == nil {
		return nil
	}
	completed := p.DeepCopy()
	completed.ServiceTemplate = p.ServiceTemplate.WithDefaults(containerImage, defaults)
	return completed
}

// ComputeName is the name of a compute in its cell. The names of the objects of the cell's other
// services begin with the reserved names.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=11
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
// +kubebuilder:validation:XValidation:rule="!self.matches('^(conductor|metadata|novncproxy)(-|$)')",message="must not be one of the reserved names conductor, metadata, novncproxy, nor begin with one and '-': call it compute1, for example"
type ComputeName string

// ComputeState tells whether a compute of a cell runs.
// +kubebuilder:validation:Enum=Active;Retired
type ComputeState string

// ComputeRetired is the state of a compute that is removed, or has been.
const ComputeRetired ComputeState = "Retired"

// Compute is one compute of a cell.
type Compute struct {
	// name of the compute: at most 11 lower-case letters, digits and '-', beginning with a
	// letter. Its host in Nova is <nova>-<cell>-<name>, except with driver Libvirt.
	// +required
	Name ComputeName `json:"name"`

	sharedv1.ComputeSettings `json:",inline"`

	// state of the compute: Active, or Retired to delete the NovaCompute at once: its service is
	// disabled, its pod is stopped when no server is on its host, and its registrations are
	// deleted. This cannot be undone before it ends. Default: Active.
	// +optional
	State ComputeState `json:"state,omitempty"`

	// containerImage replaces the containerImage of the Nova for this compute.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ContainerImage string `json:"containerImage,omitempty"`

	commonv1.ServiceSettings `json:",inline"`
}

// WithDefaults completes the compute with the image and the defaults of its Nova.
func (c Compute) WithDefaults(containerImage string, defaults commonv1.ServiceDefaults) Compute {
	template := commonv1.ServiceTemplate{ContainerImage: c.ContainerImage, ServiceSettings: c.ServiceSettings}
	completed := template.WithDefaults(containerImage, defaults)
	c.ContainerImage, c.ServiceSettings = completed.ContainerImage, completed.ServiceSettings
	return c
}

// CellMessageBus is the RabbitMQ of one cell.
//
// +kubebuilder:validation:XValidation:rule="!has(self.managementPort) || !has(self.connectionSecretRef)",message="must not have managementPort together with connectionSecretRef: the operator registers nothing at this RabbitMQ"
type CellMessageBus struct {
	registrationv1.Connection `json:",inline"`

	// managementPort is the port of RabbitMQ's management API, which registers vhosts and
	// users. Default: the port named management of the Service (with TLS management-tls,
	// if it exists); with host 15672, or 15671 with TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ManagementPort *int32 `json:"managementPort,omitempty"`
}
