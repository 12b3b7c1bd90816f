package v1alpha1

// Connections names the Secrets of a service that needs four connections: to the
// API database, to the database of cell0, to the message bus and to Keystone.
type Connections struct {
	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database: hostname, user, password and optionally port (3306), database
	// (nova_api), ca.crt (which TLS needs), tls.
	// +required
	APIDatabaseSecretRef SecretReference `json:"apiDatabaseSecretRef"`

	// cell0DatabaseSecretRef names the Secret with the connection to the database
	// of cell0: hostname, user, password and optionally port (3306), database
	// (nova_cell0), ca.crt (which TLS needs), tls.
	// +required
	Cell0DatabaseSecretRef SecretReference `json:"cell0DatabaseSecretRef"`

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
