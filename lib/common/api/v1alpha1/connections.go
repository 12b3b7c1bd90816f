package v1alpha1

// Connections names the Secrets of a service that needs four connections: to the
// API database, to its own database, to the message bus and to Keystone. A kind
// that embeds Connections states the default names of both databases in its
// description.
type Connections struct {
	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database: hostname, user, password and optionally port (3306), database
	// (default: see the kind), ca.crt (which TLS needs), tls.
	// +required
	APIDatabaseSecretRef SecretReference `json:"apiDatabaseSecretRef"`

	// databaseSecretRef names the Secret with the connection to the service's
	// database: hostname, user, password and optionally port (3306), database
	// (default: see the kind), ca.crt (which TLS needs), tls.
	// +required
	DatabaseSecretRef SecretReference `json:"databaseSecretRef"`

	// messageBusSecretRef names the Secret with the connection to the message
	// bus: hostname (or a list host[:port],...), user, password and optionally
	// port (5672, 5671 with TLS), vhost (/), ca.crt (which TLS needs), tls, quorumQueues.
	// +required
	MessageBusSecretRef SecretReference `json:"messageBusSecretRef"`

	// identitySecretRef names the Secret with the service's account at Keystone:
	// authURL, user, password and optionally publicAuthURL, project (service),
	// userDomain and projectDomain (Default), region (RegionOne), ca.crt.
	// +required
	IdentitySecretRef SecretReference `json:"identitySecretRef"`
}
