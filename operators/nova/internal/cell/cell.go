// Package cell says what a NovaCell is made of.
package cell

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/backend"
)

// Service is the table of contents of a NovaCell.
var Service = engine.Service[*novav1.NovaCell]{
	Name: "nova-cell",
	Stages: []engine.Stage[*novav1.NovaCell]{
		{Condition: novav1.ConditionInputsReady, Needs: inputs, Build: check},
		{Condition: novav1.ConditionCredentialsReady, Build: credentials},
		{Condition: novav1.ConditionDatabaseReady, Needs: databaseNeeds, Do: registerDatabase, Every: backend.RegisterEvery, Build: databaseSecret},
		{Condition: novav1.ConditionMessageBusReady, Needs: messageBusNeeds, Do: registerMessageBus, Every: backend.RegisterEvery, Build: messageBusSecret},
		{Condition: novav1.ConditionConductorReady, Build: conductor, Continue: true},
		{Condition: novav1.ConditionSchemaReady, Needs: schemas, Continue: true},
		{Condition: novav1.ConditionMapped, Needs: mapNeeds, Build: mapCell, Report: reportMapping},
		{Condition: novav1.ConditionComputeConfigReady, Build: computeConfig, Report: reportComputeConfig},
		{Condition: novav1.ConditionHostsMapped, Do: countHosts, Every: countEvery, Build: discoverHosts, Report: reportHosts},
	},
	Teardown: []engine.Stage[*novav1.NovaCell]{
		{Condition: "ConductorRemoved", Build: withoutConductor},
		{Condition: "MessageBusRemoved", Needs: removeMessageBusNeeds, Do: removeMessageBus},
		{Condition: "DatabaseRemoved", Needs: removeDatabaseNeeds, Do: removeDatabase},
		{Condition: "CredentialsRemoved", Build: withoutCredentials},
	},
	Owns: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &conductorv1.NovaConductor{}},
}

// Keys of the Secret of credentials.
const (
	keyDatabase   = "databasePassword"
	keyMessageBus = "messageBusPassword"
)

func credentialsName(cr *novav1.NovaCell) string { return cr.Name + "-credentials" }

func owner(cr *novav1.NovaCell) backend.Owner {
	return backend.Owner{Object: cr, Credentials: credentialsName(cr)}
}

func database(cr *novav1.NovaCell) backend.Database {
	return backend.Database{
		Server:  backend.Server{Owner: owner(cr), Connection: cr.Spec.Database.Connection, Key: keyDatabase},
		Purpose: "database", Name: cr.Spec.Database.Name,
		Drop: cr.Spec.DeletionPolicy == novav1.DeletionDelete,
	}
}

func messageBus(cr *novav1.NovaCell) backend.MessageBus {
	m := cr.Spec.MessageBus
	return backend.MessageBus{
		Server:         backend.Server{Owner: owner(cr), Connection: m.Connection, Key: keyMessageBus},
		ManagementPort: m.ManagementPort, QueueType: m.QueueType, Vhost: m.Vhost,
	}
}

func inputs(cr *novav1.NovaCell) []engine.Need {
	needs := append(database(cr).Inputs(), messageBus(cr).Inputs()...)
	return append(needs,
		engine.Secret(cr.Spec.APIDatabaseSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword),
		engine.Secret(cr.Spec.IdentitySecretRef.Name, config.KeyAuthURL, config.KeyUser, config.KeyPassword))
}

// check refuses what no service could use; it builds nothing.
func check(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	if err := database(cr).Check(in); err != nil {
		return nil, err
	}
	return nil, messageBus(cr).Check(in)
}

// credentials come before the accounts: a crash between the two loses nothing.
// They have no owner reference, because deletion in the foreground would remove
// them before the teardown has run.
func credentials(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Unowned(engine.Generated(applycorev1.Secret(credentialsName(cr), ""), keyDatabase, keyMessageBus))}, nil
}

func databaseNeeds(cr *novav1.NovaCell) []engine.Need { return database(cr).Needs() }

func registerDatabase(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	return nil, database(cr).Ensure(ctx, in)
}

func databaseSecret(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	_, secret, err := database(cr).Secret(in)
	return secret, err
}

func messageBusNeeds(cr *novav1.NovaCell) []engine.Need { return messageBus(cr).Needs() }

func registerMessageBus(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	return nil, messageBus(cr).Ensure(ctx, in)
}

func messageBusSecret(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	_, secret, err := messageBus(cr).Secret(in)
	return secret, err
}

// secrets returns the names of the cell's own connection Secrets.
func secrets(cr *novav1.NovaCell, in engine.Inputs) (ofDatabase, ofMessageBus string, err error) {
	if ofDatabase, _, err = database(cr).Secret(in); err != nil {
		return "", "", err
	}
	ofMessageBus, _, err = messageBus(cr).Secret(in)
	return ofDatabase, ofMessageBus, err
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
