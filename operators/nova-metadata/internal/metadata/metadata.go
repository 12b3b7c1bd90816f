// Package metadata builds the objects of a NovaMetadata.
package metadata

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/exposure"
	"asterism.dev/lib/common/workload"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novametadata,verbs=get;list;watch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novametadata/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novametadata/finalizers,verbs=update
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
	service = workload.Described[*novav1.NovaMetadata](describe)
	exposed = exposure.Described[*novav1.NovaMetadata](expose)
)

// Service lists the stages of a NovaMetadata.
var Service = engine.Service[*novav1.NovaMetadata]{
	Name: "nova-metadata",
	Stages: []engine.Stage[*novav1.NovaMetadata]{
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

// expose exposes nothing without the field, which has no default: it would appear in objects that
// their owners did not change.
func expose(cr *novav1.NovaMetadata) exposure.Exposed {
	settings := cr.Spec.Exposure
	settings.Type = cmp.Or(settings.Type, commonv1.ExposureNone)
	return exposure.Exposed{Service: describe(cr), Exposure: settings, Reencrypt: true, TimeoutSeconds: cr.Spec.Timeout()}
}

// endpoints has no public address while no object exposes the service: agents outside the
// cluster cannot use the address of the Service.
func endpoints(cr *novav1.NovaMetadata, in engine.Inputs) {
	all := expose(cr).Endpoints(cr.Namespace, cr.Status.Endpoints, in)
	internal := commonv1.URLOf(all, commonv1.InterfaceInternal)
	cr.Status.Endpoints = slices.DeleteFunc(all, func(e commonv1.Endpoint) bool {
		return e.Interface == commonv1.InterfacePublic && e.URL == internal
	})
}

// describe returns the process and its connections. All pods share one host name, so that
// the rows of former pods do not accumulate in the database. Requests come from the proxy
// of Neutron, which signs them with the shared secret.
func describe(cr *novav1.NovaMetadata) workload.Service {
	var defaults config.Sections
	defaults.Set("DEFAULT", "host", cr.Name)
	defaults.Set("neutron", "service_metadata_proxy", "true")
	if cr.Spec.Mode != novav1.MetadataCell {
		nova.LimitRetries(&defaults)
	}
	service := workload.Service{
		Name:              "nova-metadata",
		Instance:          cr.Name,
		Project:           nova.Project(),
		Spec:              cr.Spec.ServiceSpec,
		Databases:         databases(cr),
		MessageBus:        cr.Spec.MessageBusSecretRef.Name,
		Shared:            []workload.SharedSecret{{Secret: cr.Spec.MetadataSecretRef.Name, Section: "neutron", Option: "metadata_proxy_shared_secret"}},
		SharedConnections: nova.Metadata.Connections(cr.Spec.SharedConnections),
		FromImage:         []string{"api-paste.ini"},
		WSGI:              &workload.WSGI{Script: "nova-metadata-wsgi", Module: "nova.wsgi.metadata", Program: "nova-api", LongestSeconds: nova.LongestSeconds(cr.Spec.Timeout()), Settings: cr.Spec.WSGISettings},
		Port:              &workload.Port{Name: "metadata", Number: 8775, HealthPath: "/"},
		GraceSeconds:      cr.Spec.Timeout(),
	}
	service.Owned.Set("api", "local_metadata_per_cell", strconv.FormatBool(cr.Spec.Mode == novav1.MetadataCell))
	// The server of an image without a WSGI server has its own options.
	defaults.Set("DEFAULT", "enabled_apis", "metadata")
	defaults.Set("DEFAULT", "metadata_listen", "::")
	defaults.Set("DEFAULT", "metadata_workers", fmt.Sprint(service.Workers()))
	defaults.Set("wsgi", "keep_alive", "false")
	service.Defaults = defaults
	nova.ServeTLS(&service, "metadata")
	if cr.Spec.IdentitySecretRef != nil {
		service.Identity = workload.Identity{Secret: cr.Spec.IdentitySecretRef.Name}
	}
	return service
}

// databases of the service. That of a cell has no API database, and so serves no other cell.
func databases(cr *novav1.NovaMetadata) []workload.Database {
	if cr.Spec.Mode == novav1.MetadataCell {
		return []workload.Database{nova.CellDatabase(cr.Spec.DatabaseSecretRef.Name)}
	}
	return []workload.Database{
		nova.Cell0Database(cr.Spec.Cell0DatabaseSecretRef.Name),
		nova.APIDatabase(cr.Spec.APIDatabaseSecretRef.Name),
	}
}
