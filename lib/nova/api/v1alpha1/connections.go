package v1alpha1

import commonv1 "asterism.dev/lib/common/api/v1alpha1"

// Connections names the Secrets of a service with four connections: to the API
// database, to the database of cell0, to the message bus and to Keystone.
type Connections struct {
	// apiDatabaseSecretRef names the Secret with the connection to the API
	// database. Required keys: hostname, user, password. Optional keys: port (default
	// 3306), database (default nova_api), ca.crt (required for TLS), tls.
	// +required
	APIDatabaseSecretRef commonv1.SecretReference `json:"apiDatabaseSecretRef"`

	// cell0DatabaseSecretRef names the Secret with the connection to the database of
	// cell0. Required keys: hostname, user, password. Optional keys: port (default
	// 3306), database (default nova_cell0), ca.crt (required for TLS), tls.
	// +required
	Cell0DatabaseSecretRef commonv1.SecretReference `json:"cell0DatabaseSecretRef"`

	// messageBusSecretRef names the Secret with the connection to the message bus.
	// Required keys: hostname (or a list host[:port],...), user, password. Optional
	// keys: port (default 5672, with TLS 5671), vhost (default /), ca.crt (required
	// for TLS), tls, quorumQueues and transientQuorumQueues (default false).
	// +required
	MessageBusSecretRef commonv1.SecretReference `json:"messageBusSecretRef"`

	// identitySecretRef names the Secret with the service's account at Keystone.
	// Required keys: authURL, user, password, or authURL, applicationCredentialID,
	// applicationCredentialSecret. Optional keys: publicAuthURL (default
	// authURL), project (default service), userDomain and projectDomain (default
	// Default), region (default RegionOne), ca.crt.
	// +required
	IdentitySecretRef commonv1.SecretReference `json:"identitySecretRef"`
}
