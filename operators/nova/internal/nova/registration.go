package nova

import (
	"cmp"
	"path"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"
	"asterism.dev/lib/registration"
	registrationv1 "asterism.dev/lib/registration/api/v1alpha1"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// accounts of a Nova, in the order of the fields of Connections.
var accounts = []func(*novav1.Nova) registration.Account{apiDatabase, cell0Database, messageBus, identity}

func prefix(cr *novav1.Nova) string { return cmp.Or(cr.Spec.NamePrefix, cr.Name) }

func apiDatabase(cr *novav1.Nova) registration.Account {
	a := database(cr, cr.Spec.Database.APIDatabaseSecretRef, prefix(cr)+"_api", nova.APIDatabaseName)
	a.Purpose, a.Key = "api-database", "apiDatabasePassword"
	return a
}

func cell0Database(cr *novav1.Nova) registration.Account {
	a := database(cr, cr.Spec.Database.Cell0DatabaseSecretRef, prefix(cr)+"_cell0", nova.Cell0DatabaseName)
	a.Purpose, a.Key = "cell0-database", "cell0DatabasePassword"
	return a
}

func database(cr *novav1.Nova, given *commonv1.SecretReference, name, defaultName string) registration.Account {
	d := cr.Spec.Database
	return registration.Account{
		Owner:      cr,
		Connection: registrationv1.Connection{Server: d.Server, AdminSecretRef: d.AdminSecretRef, ConnectionSecretRef: given},
		Server: registration.Database{
			DefaultName: defaultName,
			Drop:        cr.Spec.DeletionPolicy == novav1.DeletionDelete,
			Mapped:      cr.Status.Database != "", Former: path.Dir(cr.Status.Database) + "/" + name,
		},
		Name: name,
	}
}

// reportDatabase reports the API database once it is registered. cell0 is at the same server.
func reportDatabase(cr *novav1.Nova, in engine.Inputs) {
	if location, err := registration.Location(apiDatabase(cr), in); err == nil {
		cr.Status.Database = location
	}
}

func messageBus(cr *novav1.Nova) registration.Account {
	m := cr.Spec.MessageBus
	return registration.Account{
		Owner:      cr,
		Connection: m.Connection,
		Server: registration.MessageBus{
			ManagementPort: m.ManagementPort,
			QuorumQueues:   m.QueueType != novav1.QueueClassic, TransientQuorumQueues: m.QueueType == novav1.QueueAllQuorum,
		},
		Name: prefix(cr) + "_api", Purpose: "messagebus", Key: "messageBusPassword",
	}
}

func identity(cr *novav1.Nova) registration.Account {
	i := cr.Spec.Identity
	return registration.Account{
		Owner:      cr,
		Connection: registrationv1.Connection{AdminSecretRef: i.AdminSecretRef, ConnectionSecretRef: i.ConnectionSecretRef},
		Server:     keystone(cr),
		Name:       prefix(cr) + "_nova", Purpose: "identity", Key: "identityPassword",
	}
}

// keystone gives Nova's user role admin for requests to other services, and role service for
// service tokens.
func keystone(cr *novav1.Nova) registration.Identity {
	return registration.Identity{Region: cr.Spec.Identity.Region, Project: "service", Roles: []string{"admin", "service"}}
}

// catalog has the administrator's account of identity.
func catalog(cr *novav1.Nova) registration.Account {
	a := identity(cr)
	a.Server = registration.Catalog{
		Identity: keystone(cr), ServiceType: "compute", ServiceName: nova.Name,
		Endpoints: func(in engine.Inputs) []commonv1.Endpoint { return endpoints(cr, in) },
	}
	return a
}

// inputs are the Secrets and Services that the first stage waits for. The API uses every shared
// connection.
func inputs(cr *novav1.Nova) []engine.Need {
	needs := append(registration.InputNeeds(accounts...)(cr), nova.API.Connections(cr.Spec.SharedConnections).Needs()...)
	if cr.Spec.MetadataSecretRef != nil {
		needs = append(needs, engine.Secret(cr.Spec.MetadataSecretRef.Name, config.KeySharedSecret))
	}
	return needs
}

// credentials builds the Secret of the passwords and the metadata Secret, which has the
// secret that the metadata service shares with Neutron. spec.metadataSecretRef may name the
// Secret that the operator generated before, and so this Secret is kept.
func credentials(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	children, err := registration.Credentials(accounts...)(cr, in)
	secret := applycorev1.Secret(metadataSecret(cr), "")
	if cr.Spec.MetadataSecretRef != nil {
		return append(children, engine.Kept(secret)), err
	}
	return append(children, engine.Generated(secret, config.KeySharedSecret)), err
}

func metadataSecret(cr *novav1.Nova) string {
	if cr.Spec.MetadataSecretRef != nil {
		return cr.Spec.MetadataSecretRef.Name
	}
	return metadataName(cr)
}
