// Package scheduler builds the objects of a NovaScheduler.
package scheduler

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaschedulers,verbs=get;list;watch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaschedulers/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaschedulers/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

var service = workload.Described[*novav1.NovaScheduler](describe)

// Service lists the stages of a NovaScheduler.
var Service = engine.Service[*novav1.NovaScheduler]{
	Name: "nova-scheduler",
	Stages: []engine.Stage[*novav1.NovaScheduler]{
		{Condition: novav1.ConditionInputsReady, Needs: service.Inputs},
		{Condition: novav1.ConditionConfigReady, Build: service.Configuration},
		{Condition: novav1.ConditionWorkloadReady, Build: service.Stateful, Judge: service.JudgeNetworks},
	},
	Report: service.Report,
	Owns:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}},
}

// graceSeconds is the time in which a stopped service finishes its work, the default of
// oslo.service.
const graceSeconds = 60

// describe returns the process and its connections. A pod has one worker, because the
// service scales with pods.
func describe(cr *novav1.NovaScheduler) workload.Service {
	var defaults config.Sections
	defaults.Set("scheduler", "workers", "1")
	defaults.Set("upgrade_levels", "compute", "auto")
	// Computes report their instances on the buses of their cells, on which the scheduler does not
	// listen. It would load all instances when it starts, and then never use them.
	defaults.Set("filter_scheduler", "track_instance_changes", "false")
	nova.LimitRetries(&defaults)
	nova.EndWithin(&defaults, 5)
	return workload.Service{
		Name:     "nova-scheduler",
		Instance: cr.Name,
		Project:  nova.Project(),
		Spec:     cr.Spec.ServiceSpec,
		Defaults: defaults,
		Databases: []workload.Database{
			nova.Cell0Database(cr.Spec.Cell0DatabaseSecretRef.Name),
			nova.APIDatabase(cr.Spec.APIDatabaseSecretRef.Name),
		},
		MessageBus:        cr.Spec.MessageBusSecretRef.Name,
		Identity:          workload.Identity{Secret: cr.Spec.IdentitySecretRef.Name},
		Command:           workload.Start("nova-scheduler"),
		GraceSeconds:      graceSeconds,
		SharedConnections: nova.Scheduler.Connections(cr.Spec.SharedConnections),
	}
}
