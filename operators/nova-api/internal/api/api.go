// Package api builds the objects of a NovaAPI.
package api

import (
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/exposure"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaapis,verbs=get;list;watch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaapis/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novaapis/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

var (
	service = workload.Described[*novav1.NovaAPI](describe)
	exposed = exposure.Described[*novav1.NovaAPI](expose)
)

// Service lists the stages of a NovaAPI.
var Service = engine.Service[*novav1.NovaAPI]{
	Name: "nova-api",
	Stages: []engine.Stage[*novav1.NovaAPI]{
		{Condition: novav1.ConditionInputsReady, Needs: service.Inputs},
		{Condition: novav1.ConditionConfigReady, Build: service.Configuration},
		{Condition: novav1.ConditionImageReady, Build: service.ImageCheck, Judge: service.JudgeImage},
		{Condition: novav1.ConditionWorkloadReady, Build: service.Stateless, Judge: service.JudgeNetworks},
		{Condition: novav1.ConditionEndpointReady, Needs: exposed.Needs, Build: exposed.Build, Report: endpoints},
	},
	Report: service.Report,
	Owns: []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &batchv1.Job{}, &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{},
		&routev1.Route{}, &networkingv1.Ingress{}, &gatewayv1.HTTPRoute{},
	},
}

// describe returns the process and its connections. All pods share one host name, so that
// the rows of former pods do not accumulate in the database.
func describe(cr *novav1.NovaAPI) workload.Service {
	var defaults config.Sections
	defaults.Set("DEFAULT", "host", cr.Name)
	defaults.Set("DEFAULT", "rpc_response_timeout", fmt.Sprint(cr.Spec.Timeout()))
	defaults.Set("oslo_middleware", "enable_proxy_headers_parsing", "true")
	defaults.Set("upgrade_levels", "compute", "auto")
	nova.LimitRetries(&defaults)
	// The defaults of Nova from release 27 on: the scopes and roles of Secure RBAC.
	defaults.Set("oslo_policy", "enforce_scope", "true")
	defaults.Set("oslo_policy", "enforce_new_defaults", "true")
	service := workload.Service{
		Name:     "nova-api",
		Instance: cr.Name,
		Project:  nova.Project(),
		Spec:     cr.Spec.ServiceSpec,
		Databases: []workload.Database{
			nova.Cell0Database(cr.Spec.Cell0DatabaseSecretRef.Name),
			nova.APIDatabase(cr.Spec.APIDatabaseSecretRef.Name),
		},
		MessageBus:        cr.Spec.MessageBusSecretRef.Name,
		Identity:          workload.Identity{Secret: cr.Spec.IdentitySecretRef.Name, AuthToken: "compute"},
		SharedConnections: nova.API.Connections(cr.Spec.SharedConnections),
		FromImage:         []string{"api-paste.ini"},
		WSGI:              &workload.WSGI{Script: "nova-api-wsgi", Module: "nova.wsgi.osapi_compute", Program: "nova-api", LongestSeconds: nova.LongestSeconds(cr.Spec.Timeout()), Settings: cr.Spec.WSGISettings},
		Port:              &workload.Port{Name: "api", Number: 8774, HealthPath: "/"},
		GraceSeconds:      cr.Spec.Timeout(),
	}
	// The server of an image without a WSGI server has its own options.
	defaults.Set("DEFAULT", "enabled_apis", "osapi_compute")
	defaults.Set("DEFAULT", "osapi_compute_listen", "::")
	defaults.Set("DEFAULT", "osapi_compute_workers", fmt.Sprint(service.Workers()))
	defaults.Set("wsgi", "keep_alive", "false")
	service.Defaults = defaults
	nova.ServeTLS(&service, "osapi_compute")
	return service
}

// expose has the path of the API that the catalog names.
func expose(cr *novav1.NovaAPI) exposure.Exposed {
	return exposure.Exposed{Service: describe(cr), Exposure: cr.Spec.Exposure, Path: "/v2.1", Reencrypt: true, TimeoutSeconds: cr.Spec.Timeout()}
}

func endpoints(cr *novav1.NovaAPI, in engine.Inputs) {
	cr.Status.Endpoints = expose(cr).Endpoints(cr.Namespace, cr.Status.Endpoints, in)
}
