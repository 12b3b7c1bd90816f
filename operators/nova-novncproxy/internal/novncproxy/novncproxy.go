// Package novncproxy builds the objects of a NovaNoVNCProxy.
package novncproxy

import (
	_ "embed"
	"fmt"
	"path"
	"strconv"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
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

	novav1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
)

// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novanovncproxies,verbs=get;list;watch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novanovncproxies/status,verbs=patch
// +kubebuilder:rbac:groups=nova.asterism.dev,resources=novanovncproxies/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create;update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

var (
	service = workload.Described[*novav1.NovaNoVNCProxy](describe)
	exposed = exposure.Described[*novav1.NovaNoVNCProxy](expose)
)

// Service lists the stages of a NovaNoVNCProxy.
var Service = engine.Service[*novav1.NovaNoVNCProxy]{
	Name: "nova-novncproxy",
	Stages: []engine.Stage[*novav1.NovaNoVNCProxy]{
		{Condition: novav1.ConditionInputsReady, Needs: service.Inputs},
		{Condition: novav1.ConditionConfigReady, Build: service.Configuration},
		{Condition: novav1.ConditionWorkloadReady, Build: service.Stateless, Judge: service.JudgeNetworks},
		{Condition: novav1.ConditionEndpointReady, Needs: exposed.Needs, Build: exposed.Build, Report: endpoints},
	},
	Report: service.Report,
	Owns: []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{},
		&routev1.Route{}, &networkingv1.Ingress{}, &gatewayv1.HTTPRoute{},
	},
}

const (
	port = 6080
	// page is the client in noVNC's folder that takes the token from its URL.
	page = "/vnc_lite.html"
	// graceSeconds is the time for which a stopped pod keeps open consoles. The proxy itself
	// closes all of them at once when it is stopped. It is as long as a token lives (nova:
	// consoleauth.token_ttl), and a drained node waits no longer for its pods.
	graceSeconds = 600
)

const serveName = "serve"

//go:embed serve
var serve string

// logLevels are the defaults of oslo.log that matter for the proxy, and hide the requests of
// the proxy, which contain the tokens of consoles.
const logLevels = "amqp=WARN,sqlalchemy=WARN,stevedore=WARN,oslo.messaging=INFO,oslo_messaging=INFO,nova.console.websocketproxy=WARN"

// describe returns the process and its connections: the database of the cell has the tokens,
// and a compute confirms the port of a console. The proxy needs neither the API database nor
// Keystone (nova: console/websocketproxy.py).
func describe(cr *novav1.NovaNoVNCProxy) workload.Service {
	s := workload.Service{
		Name:         "nova-novncproxy",
		Instance:     cr.Name,
		Project:      nova.Project(),
		Spec:         cr.Spec.ServiceSpec,
		Databases:    []workload.Database{nova.CellDatabase(cr.Spec.DatabaseSecretRef.Name)},
		MessageBus:   cr.Spec.MessageBusSecretRef.Name,
		Command:      workload.Start(path.Join(config.ScriptsDir, serveName), "nova-novncproxy"),
		Scripts:      map[string]string{serveName: serve},
		Port:         &workload.Port{Name: "novnc", Number: port, HealthPath: page},
		GraceSeconds: graceSeconds,
	}
	s.Defaults.Set("DEFAULT", "web", "/usr/share/novnc")
	s.Defaults.Set("DEFAULT", "default_log_levels", logLevels)
	s.Defaults.Set("upgrade_levels", "compute", "auto")
	s.Owned.Set("DEFAULT", "daemon", "false")
	s.Owned.Set("vnc", "novncproxy_host", "::")
	s.Owned.Set("vnc", "novncproxy_port", fmt.Sprint(port))
	s.Owned.Set("DEFAULT", "ssl_only", strconv.FormatBool(cr.Spec.TLSSecretRef != nil))
	s.ServeTLS(cr.Spec.TLSSecretRef, "DEFAULT", "cert", "key")
	return s
}

// expose keeps a console whose screen does not change: the router closes it after an hour
// otherwise, and ingress-nginx after a minute.
func expose(cr *novav1.NovaNoVNCProxy) exposure.Exposed {
	return exposure.Exposed{
		Service: describe(cr), Exposure: cr.Spec.Exposure, Path: page,
		RouteAnnotations: map[string]string{"haproxy.router.openshift.io/timeout-tunnel": "8h"},
		IngressAnnotations: map[string]string{
			"nginx.ingress.kubernetes.io/proxy-read-timeout": "28800",
			"nginx.ingress.kubernetes.io/proxy-send-timeout": "28800",
		},
	}
}

func endpoints(cr *novav1.NovaNoVNCProxy, in engine.Inputs) {
	cr.Status.Endpoints = expose(cr).Endpoints(cr.Namespace, cr.Status.Endpoints, in)
}
