// Package cell has the stages of a NovaCell.
package cell

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"
	"asterism.dev/lib/registration"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

type stage = engine.Stage[*novav1.NovaCell]

// Service lists the stages of a NovaCell.
var Service = engine.Service[*novav1.NovaCell]{
	Name: "nova-cell",
	Stages: []stage{
		{Condition: novav1.ConditionInputsReady, Needs: inputs, Build: registration.Check(database, messageBus)},
		{Condition: novav1.ConditionCredentialsReady, Build: credentials},
		{Condition: novav1.ConditionDatabaseReady, Needs: databaseNeeds, Do: acceptDatabase, Every: registration.Every[*novav1.NovaCell], Build: registration.Secrets(database)},
		{Condition: novav1.ConditionMessageBusReady, Needs: messageBusNeeds, Do: acceptMessageBus, Every: registration.Every[*novav1.NovaCell], Build: registration.Secrets(messageBus)},
		{Condition: novav1.ConditionConductorReady, Needs: conductorNeeds, Build: conductor, Report: reportAuthorities, Continue: true},
		{Condition: novav1.ConditionSchemaReady, Needs: schemas, Continue: true},
		{Condition: novav1.ConditionMapped, Needs: mappingNeeds, Build: mapCell, Report: reportMapping},
		{Condition: novav1.ConditionConsoleReady, Needs: consoleNeeds, Build: console, Continue: true},
		{Condition: novav1.ConditionComputeConfigReady, Build: computeConfig, Report: reportComputeConfig},
		{Condition: novav1.ConditionMetadataReady, Needs: metadataNeeds, Build: metadataService, Report: reportMetadata, Continue: true},
		{Condition: novav1.ConditionDataMigrated, Build: migrateData, Continue: true},
		{Condition: novav1.ConditionComputesReady, Needs: computeNeeds, Do: countServers, Every: countServersEvery, Build: computes, Judge: judgeComputes, Continue: true},
		{Condition: novav1.ConditionHostsMapped, Do: countHosts, Every: countEvery, Build: discoverHosts, Judge: judgeHosts, Report: reportHosts, Shown: true},
	},
	Teardown: []stage{
		{Condition: "ComputesRemoved", Needs: computeRemovalNeeds, Build: withoutComputes},
		{Condition: "MappingStopped", Needs: children, Build: withoutMapJobs},
		{Condition: emptied, Needs: removalNeeds, Do: checkEmpty, Build: removalSecrets},
		{Condition: unmappedStage, Needs: removalNeeds, Do: observeLeaving, Build: unmap, Report: reportUnmapped},
		{Condition: "ServicesRemoved", Build: withoutServices},
		registration.Remove(stage{Condition: "MessageBusRemoved"}, messageBus),
		databaseRemoved(),
		{Condition: "CredentialsRemoved", Build: registration.WithoutCredentials[*novav1.NovaCell]},
	},
	Report: reportMove,
	Owns:   []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &conductorv1.NovaConductor{}, &metadatav1.NovaMetadata{}, &novncproxyv1.NovaNoVNCProxy{}, &computev1.NovaCompute{}},
}

func database(cr *novav1.NovaCell) registration.Account {
	return registration.Account{
		Owner:      cr,
		Connection: cr.Spec.Database.Connection,
		Server: registration.Database{
			DefaultName: nova.CellDatabaseName,
			Drop:        cr.Spec.DeletionPolicy == novav1.DeletionDelete,
			Mapped:      cr.Status.UUID != "", Former: cr.Status.Database,
		},
		Name: cr.Spec.Database.Name, Purpose: "database", Key: "databasePassword",
	}
}

func messageBus(cr *novav1.NovaCell) registration.Account {
	m := cr.Spec.MessageBus
	return registration.Account{
		Owner:      cr,
		Connection: m.Connection,
		Server: registration.MessageBus{
			ManagementPort: m.ManagementPort,
			QuorumQueues:   m.QueueType != novav1.QueueClassic, TransientQuorumQueues: m.QueueType == novav1.QueueAllQuorum,
		},
		Name: m.Vhost, Purpose: "messagebus", Key: "messageBusPassword",
	}
}

func inputs(cr *novav1.NovaCell) []engine.Need {
	needs := append(sharedSecretNeeds(cr), nova.Compute.Connections(cr.Spec.SharedConnections).Needs()...)
	needs = append(needs, registration.InputNeeds(database, messageBus)(cr)...)
	return append(needs,
		engine.Secret(cr.Spec.APIDatabaseSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword),
		engine.SecretWithAny(cr.Spec.IdentitySecretRef.Name, config.IdentityKeys()...))
}

// secrets returns the names of the cell's connection Secrets.
func secrets(cr *novav1.NovaCell, in engine.Inputs) (ofDatabase, ofMessageBus string, err error) {
	if ofDatabase, _, err = database(cr).Secret(in); err != nil {
		return "", "", err
	}
	ofMessageBus, _, err = messageBus(cr).Secret(in)
	return ofDatabase, ofMessageBus, err
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
