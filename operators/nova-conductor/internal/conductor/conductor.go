// Package conductor builds the objects of a NovaConductor.
package conductor

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaconductors,verbs=get;list;watch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaconductors/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaconductors/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

var service = workload.Described[*novav1.NovaConductor](describe)

// Service lists the stages of a NovaConductor.
var Service = engine.Service[*novav1.NovaConductor]{
	Name: "nova-conductor",
	Stages: []engine.Stage[*novav1.NovaConductor]{
		{Condition: novav1.ConditionInputsReady, Needs: service.Inputs},
		{Condition: novav1.ConditionConfigReady, Build: service.Configuration},
		{Condition: novav1.ConditionSchemaReady, Build: schema},
		{Condition: novav1.ConditionWorkloadReady, Build: pods, Judge: service.JudgeNetworks},
	},
	Report: service.Report,
	Owns: []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &batchv1.Job{}, &appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{},
	},
}

// pods does not change the pods while the rollout is held: an upgrade syncs every schema
// before the first pod runs the new release.
func pods(cr *novav1.NovaConductor, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.Rollout == commonv1.RolloutHeld {
		return nil, engine.Wait("spec.rollout is Held: the pods are not changed until spec.rollout is Automatic, which a Nova sets when its cells are mapped")
	}
	return describe(cr).Stateful(in)
}

// describe returns the process and its connections.
func describe(cr *novav1.NovaConductor) workload.Service {
	shared := nova.Conductor.Connections(cr.Spec.SharedConnections)
	service := workload.Service{
		Name:              "nova-conductor",
		Instance:          cr.Name,
		Project:           nova.Project(),
		Spec:              cr.Spec.ServiceSpec,
		Defaults:          defaults(),
		Databases:         databases(cr),
		Authorities:       authorities(cr),
		MessageBus:        cr.Spec.MessageBusSecretRef.Name,
		Command:           workload.Start("nova-conductor"),
		GraceSeconds:      graceSeconds,
		SharedConnections: shared,
	}
	if cr.Spec.Role == novav1.RoleSuper {
		nova.LimitRetries(&service.Defaults)
	}
	switch {
	case cr.Spec.IdentitySecretRef != nil:
		service.Identity = workload.Identity{Secret: cr.Spec.IdentitySecretRef.Name}
	case shared.Defaults("").Get("placement", "valid_interfaces") == "": // no entry has an account for it
		withoutPlacement(&service.Defaults)
	}
	return service
}

// databases of the conductor. The [database] of the superconductor is cell0. The conductor
// of a cell has the API database only if up-calls are wanted.
func databases(cr *novav1.NovaConductor) []workload.Database {
	own := nova.CellDatabase(cr.Spec.DatabaseSecretRef.Name)
	if cr.Spec.Role == novav1.RoleSuper {
		own = nova.Cell0Database(cr.Spec.DatabaseSecretRef.Name)
	}
	if len(authorities(cr)) > 0 {
		own.CAName = "cell_database" // files of cells are <cell>-database-ca.crt, and no name of a cell has a _
	}
	all := []workload.Database{own}
	if api := cr.Spec.APIDatabaseSecretRef; api != nil {
		all = append(all, nova.APIDatabase(api.Name))
	}
	return all
}

// authorities returns the authority of cell0 for the conductor of a cell. When the conductor starts, it
// asks every cell for the versions of its services, also cell0, whose URL it finds in the mapping. This
// URL names the CA file that the global services have for their own [database].
func authorities(cr *novav1.NovaConductor) []workload.Authority {
	if cr.Spec.Cell0DatabaseSecretRef == nil {
		return nil
	}
	return []workload.Authority{{File: config.CAFile("", "database"), Secret: cr.Spec.Cell0DatabaseSecretRef.Name}}
}
