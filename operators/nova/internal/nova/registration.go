package nova

import (
	"context"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// Keys of the Secret of credentials; metadataSharedSecret is not a password of
// an account, but generated like one.
const (
	keyAPIDatabase   = "apiDatabasePassword"
	keyCell0Database = "cell0DatabasePassword"
	keyMessageBus    = "messageBusPassword"
	keyIdentity      = "identityPassword"
)

func owner(cr *novav1.Nova) backend.Owner {
	return backend.Owner{Object: cr, Credentials: credentialsName(cr)}
}

func prefix(cr *novav1.Nova) string {
	if cr.Spec.Database.Prefix != "" {
		return cr.Spec.Database.Prefix
	}
	return cr.Name
}

func apiDatabase(cr *novav1.Nova) backend.Database {
	d := cr.Spec.Database
	return backend.Database{
		Server:  backend.Server{Owner: owner(cr), Connection: connection(d, d.APISecretRef), Key: keyAPIDatabase},
		Purpose: "api-database", Name: prefix(cr) + "_api",
		Drop: cr.Spec.DeletionPolicy == novav1.DeletionDelete,
	}
}

func connection(d novav1.Database, given *commonv1.SecretReference) novav1.Connection {
	return novav1.Connection{ServiceRef: d.ServiceRef, AdminSecretRef: d.AdminSecretRef, ConnectionSecretRef: given}
}

func cell0Database(cr *novav1.Nova) backend.Database {
	d := cr.Spec.Database
	return backend.Database{
		Server:  backend.Server{Owner: owner(cr), Connection: connection(d, d.Cell0SecretRef), Key: keyCell0Database},
		Purpose: "cell0-database", Name: prefix(cr) + "_cell0",
		Drop: cr.Spec.DeletionPolicy == novav1.DeletionDelete,
	}
}

func messageBus(cr *novav1.Nova) backend.MessageBus {
	m := cr.Spec.MessageBus
	return backend.MessageBus{
		Server:         backend.Server{Owner: owner(cr), Connection: m.Connection, Key: keyMessageBus},
		ManagementPort: m.ManagementPort, QueueType: m.QueueType, Vhost: prefix(cr) + "_api",
	}
}

func identity(cr *novav1.Nova) backend.Identity {
	return backend.Identity{Owner: owner(cr), Identity: cr.Spec.Identity, User: prefix(cr) + "_nova", Key: keyIdentity}
}

// inputs are looked at before anything is done, so that a typing error in the
// last of them does not wait for a database.
func inputs(cr *novav1.Nova) []engine.Need {
	needs := append(apiDatabase(cr).Inputs(), cell0Database(cr).Inputs()...)
	needs = append(needs, messageBus(cr).Inputs()...)
	needs = append(needs, identity(cr).Inputs()...)
	if cr.Spec.MetadataSecretRef != nil {
		needs = append(needs, engine.Secret(cr.Spec.MetadataSecretRef.Name, config.KeySharedSecret))
	}
	return needs
}

// check refuses what no service could use; it builds nothing.
func check(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	for _, err := range []error{
		apiDatabase(cr).Check(in), cell0Database(cr).Check(in), messageBus(cr).Check(in), identity(cr).Check(in),
	} {
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// credentials come before the accounts: a crash between the two loses nothing.
// They have no owner reference, because deletion in the foreground would remove
// them before the teardown has run.
func credentials(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	accounts := applycorev1.Secret(credentialsName(cr), "")
	children := []engine.Child{engine.Unowned(engine.Generated(accounts, keyAPIDatabase, keyCell0Database, keyMessageBus, keyIdentity))}
	if cr.Spec.MetadataSecretRef == nil {
		children = append(children, engine.Generated(applycorev1.Secret(metadataName(cr), ""), config.KeySharedSecret))
	}
	return children, nil
}

func metadataSecret(cr *novav1.Nova) string {
	if cr.Spec.MetadataSecretRef != nil {
		return cr.Spec.MetadataSecretRef.Name
	}
	return metadataName(cr)
}

func databaseNeeds(cr *novav1.Nova) []engine.Need {
	return append(apiDatabase(cr).Needs(), cell0Database(cr).Needs()...)
}

func registerDatabases(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	if err := apiDatabase(cr).Ensure(ctx, in); err != nil {
		return nil, err
	}
	return nil, cell0Database(cr).Ensure(ctx, in)
}

func databaseSecrets(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	_, api, err := apiDatabase(cr).Secret(in)
	if err != nil {
		return nil, err
	}
	_, cell0, err := cell0Database(cr).Secret(in)
	return append(api, cell0...), err
}

func messageBusNeeds(cr *novav1.Nova) []engine.Need { return messageBus(cr).Needs() }

func registerMessageBus(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, messageBus(cr).Ensure(ctx, in)
}

func messageBusSecret(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	_, secret, err := messageBus(cr).Secret(in)
	return secret, err
}

func identityNeeds(cr *novav1.Nova) []engine.Need { return identity(cr).Needs() }

func registerIdentity(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, identity(cr).Ensure(ctx, in)
}
