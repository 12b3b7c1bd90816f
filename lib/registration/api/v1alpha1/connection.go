package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// Server is the address of a server at which the operator registers accounts: a Service
// or a host.
type Server struct {
	// serviceRef names the Service of the server, and requires adminSecretRef. The operator
	// uses the port named mysql, mariadb or database, for a message bus amqp (amqps with
	// TLS), otherwise the first port. It can be changed only for a cell.
	// +optional
	ServiceRef *commonv1.ServiceReference `json:"serviceRef,omitempty"`

	// host is the complete DNS name or the IP address of a server that has no Service in
	// this namespace. It replaces serviceRef, and requires adminSecretRef. It can be changed
	// only for a cell.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?([.][A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?){2,}$')",message="must be an IP address or a complete DNS name, such as db.example.org: set field port for the port"
	Host string `json:"host,omitempty"`

	// port of the host. Default: 3306 for a database, where it can be changed only for a cell;
	// for a message bus 5672, or 5671 with TLS.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// Connection is a server at which the operator registers accounts, or the Secret of an
// account that an administrator has registered.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceRef) || !has(self.host)",message="must have either serviceRef or host, not both: each is an address of the server"
// +kubebuilder:validation:XValidation:rule="has(self.host) || !has(self.port)",message="must not have port without host: the port of a Service is read from the Service"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceRef) || has(self.host)) == has(self.adminSecretRef)",message="must have adminSecretRef together with serviceRef or host: the operator registers accounts at this server with the account in the Secret"
// +kubebuilder:validation:XValidation:rule="has(self.connectionSecretRef) != (has(self.serviceRef) || has(self.host) || has(self.adminSecretRef))",message="must have either serviceRef or host with adminSecretRef, if the operator registers the account, or connectionSecretRef, if an administrator has registered it"
type Connection struct {
	Server `json:",inline"`

	// adminSecretRef names the Secret of the account that may register accounts at the
	// server: user (or username), password and optionally ca.crt (required for TLS), tls.
	// After a change, the operator registers with the new account.
	// +optional
	AdminSecretRef *commonv1.SecretReference `json:"adminSecretRef,omitempty"`

	// connectionSecretRef names the Secret of an account that an administrator has
	// registered: hostname, user, password and optionally port, ca.crt (required for TLS),
	// tls; for a database also database; for a message bus also vhost, quorumQueues and
	// transientQuorumQueues. It can be changed only for a cell. The services restart when its
	// content changes.
	// +optional
	ConnectionSecretRef *commonv1.SecretReference `json:"connectionSecretRef,omitempty"`
}

// Given returns true if an administrator has registered the account.
func (c Connection) Given() bool { return c.ConnectionSecretRef != nil }
