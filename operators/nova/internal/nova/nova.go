// Package nova has the stages of a Nova.
package nova

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	metadatav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	schedulerv1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novas;novacells,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novas/status;novacells/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novas/finalizers;novacells/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novacells;novacomputes;novaconductors;novaschedulers;novametadata;novanovncproxies;novaapis,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get,roleName=cluster
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

type stage = engine.Stage[*novav1.Nova]

// Service lists the stages of a Nova.
var Service = engine.Service[*novav1.Nova]{
	Name: "nova",
	Stages: []stage{
		{Condition: novav1.ConditionInputsReady, Needs: inputs, Build: registration.Check(accounts...)},
		{Condition: novav1.ConditionCredentialsReady, Build: credentials},
		registration.Register(stage{Condition: novav1.ConditionDatabaseReady, Report: reportDatabase}, apiDatabase, cell0Database),
		registration.Register(stage{Condition: novav1.ConditionMessageBusReady}, messageBus),
		registration.RegisterOnly(stage{Condition: novav1.ConditionIdentityReady, Continue: true}, identity),
		{Condition: novav1.ConditionReleaseKnown, Needs: identityNeeds, Build: readRelease, Judge: judgeRelease, Continue: true},
		{Condition: novav1.ConditionUpgraded, Needs: upgradeNeeds, Build: upgradeJobs, Judge: judgeUpgrade, Continue: true},
		{Condition: novav1.ConditionConductorReady, Needs: superconductorNeeds, Build: superconductor, Continue: true},
		{Condition: novav1.ConditionCellsReady, Needs: cellNeeds, Build: cells, Judge: judgeCells, Continue: true},
		{Condition: novav1.ConditionCell0Mapped, Needs: schema, Build: mapCell0},
		{Condition: novav1.ConditionUpkeepDone, Needs: upkeepNeeds, Build: upkeep, Judge: judgeUpkeep, Report: reportUpkeep, Apart: true},
		{Condition: novav1.ConditionSchedulerReady, Needs: schedulerNeeds, Build: scheduler, Continue: true},
		{Condition: novav1.ConditionMetadataReady, Needs: metadataNeeds, Build: metadataService, Report: reportMetadata, Continue: true},
		{Condition: novav1.ConditionAPIReady, Needs: apiNeeds, Build: api},
		registration.RegisterOnly(stage{Condition: novav1.ConditionEndpointsReady, Needs: endpointNeeds, Report: reportEndpoints}, catalog),
	},
	Teardown: []stage{
		registration.Remove(stage{Condition: "CatalogRemoved"}, catalog),
		{Condition: "APIRemoved", Build: withoutHTTPServices},
		{Condition: "SchedulerRemoved", Build: withoutScheduler},
		{Condition: "CellsRemoved", Needs: children, Build: withoutCells},
		{Condition: "ConductorRemoved", Build: withoutSuperconductor},
		registration.Remove(stage{Condition: "IdentityRemoved"}, identity),
		registration.Remove(stage{Condition: "MessageBusRemoved"}, messageBus),
		registration.Remove(stage{Condition: "APIDatabaseRemoved"}, apiDatabase),
		registration.Remove(stage{Condition: "Cell0DatabaseRemoved"}, cell0Database),
		{Condition: "CredentialsRemoved", Build: registration.WithoutCredentials[*novav1.Nova]},
	},
	Available: &stage{Needs: availableNeeds, Do: requestAPI, Every: requestEvery},
	Report:    report,
	Owns: []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &batchv1.Job{}, &novav1.NovaCell{},
		&conductorv1.NovaConductor{}, &schedulerv1.NovaScheduler{}, &metadatav1.NovaMetadata{}, &apiv1.NovaAPI{},
	},
}

// Names of the children of a Nova. The names of cells cannot collide with them.
func superconductorName(cr *novav1.Nova) string { return cr.Name + "-superconductor" }
func schedulerName(cr *novav1.Nova) string      { return cr.Name + "-scheduler" }
func metadataName(cr *novav1.Nova) string       { return cr.Name + "-metadata" }
func apiName(cr *novav1.Nova) string            { return cr.Name + "-api" }
func novaCellName(cr *novav1.Nova, cell novav1.Cell) string {
	return cr.Name + "-" + string(cell.Name)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
