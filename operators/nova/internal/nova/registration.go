package nova

import (
	"cmp"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// backends of a Nova, in the order of the fields of commonv1.Connections.
var backends = []func(*novav1.Nova) backend.Backend{apiDatabase, cell0Database, messageBus, identity}

func prefix(cr *novav1.Nova) string { return cmp.Or(cr.Spec.NamePrefix, cr.Name) }

func apiDatabase(cr *novav1.Nova) backend.Backend {
	b := database(cr, cr.Spec.Database.APIDatabaseSecretRef)
	b.Name, b.Purpose, b.Key = prefix(cr)+"_api", "api-database", "apiDatabasePassword"
	return b
}

func cell0Database(cr *novav1.Nova) backend.Backend {
	b := database(cr, cr.Spec.Database.Cell0DatabaseSecretRef)
	b.Name, b.Purpose, b.Key = prefix(cr)+"_cell0", "cell0-database", "cell0DatabasePassword"
	return b
}

func database(cr *novav1.Nova, given *commonv1.SecretReference) backend.Backend {
	d := cr.Spec.Database
	return backend.Backend{
		Owner:      cr,
		Connection: novav1.Connection{Server: d.Server, AdminSecretRef: d.AdminSecretRef, ConnectionSecretRef: given},
		Server:     backend.Database{Drop: cr.Spec.DeletionPolicy == novav1.DeletionDelete},
	}
}

func messageBus(cr *novav1.Nova) backend.Backend {
	m := cr.Spec.MessageBus
	return backend.Backend{
		Owner:      cr,
		Connection: m.Connection,
		Server:     backend.MessageBus{ManagementPort: m.ManagementPort, QueueType: m.QueueType},
		Name:       prefix(cr) + "_api", Purpose: "messagebus", Key: "messageBusPassword",
	}
}

func identity(cr *novav1.Nova) backend.Backend {
	i := cr.Spec.Identity
	return backend.Backend{
		Owner:      cr,
		Connection: novav1.Connection{AdminSecretRef: i.AdminSecretRef, ConnectionSecretRef: i.ConnectionSecretRef},
		Server:     backend.Identity{Region: i.Region},
		Name:       prefix(cr) + "_nova", Purpose: "identity", Key: "identityPassword",
	}
}

// catalog has the administrator's account of identity.
func catalog(cr *novav1.Nova) backend.Backend {
	b := identity(cr)
	b.Server = backend.Catalog{
		Identity:  backend.Identity{Region: cr.Spec.Identity.Region},
		Endpoints: func(in engine.Inputs) []commonv1.Endpoint { return endpoints(cr, in) },
	}
	return b
}

// inputs are the Secrets and Services that the first stage waits for.
func inputs(cr *novav1.Nova) []engine.Need {
	needs := append(backend.Inputs(backends...)(cr), workload.SharedConnectionNeeds(cr.Spec.SharedConnections)...)
	if cr.Spec.MetadataSecretRef != nil {
		needs = append(needs, engine.Secret(cr.Spec.MetadataSecretRef.Name, config.KeySharedSecret))
	}
	return needs
}

// credentials builds the Secret of the passwords and the metadata Secret, which has the
// secret that the metadata service shares with Neutron. spec.metadataSecretRef may name the
// Secret that the operator generated before, and so this Secret is kept.
func credentials(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	children, err := backend.Credentials(backends...)(cr, in)
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
