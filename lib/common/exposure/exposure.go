// Package exposure builds the object through which clients outside the cluster reach an
// HTTP service: a Route, an Ingress, an HTTPRoute or a Service of type LoadBalancer.
package exposure

import (
	"cmp"
	"errors"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"
)

// AddToScheme registers the kinds of the objects that are no part of Kubernetes.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(routev1.Install(scheme), gatewayv1.Install(scheme))
}

// Exposed is a service with a port, and how it is exposed.
type Exposed struct {
	Service  workload.Service
	Exposure commonv1.Exposure
	// Path of the addresses: /v2.1.
	Path string
	// Reencrypt has a Route decrypt at the router and connect to a service with TLS by TLS. By
	// default, the router passes TLS through to such a service.
	Reencrypt bool
	// TimeoutSeconds is the time in which a request is answered. 0: the default of the router,
	// the ingress controller or the Gateway.
	TimeoutSeconds int64
	// RouteAnnotations are defaults for the annotations of a Route.
	RouteAnnotations map[string]string
	// IngressAnnotations are defaults for the annotations of an Ingress.
	IngressAnnotations map[string]string
}

// Described converts a description into the functions of a stage, see workload.Described.
type Described[T engine.Object] func(T) Exposed

// Needs is a Stage's Needs, see Exposed.Needs.
func (d Described[T]) Needs(cr T) []engine.Need { return d(cr).Needs() }

// Build is a Stage's Build, see Exposed.Build.
func (d Described[T]) Build(cr T, in engine.Inputs) ([]engine.Child, error) {
	return d(cr).Build(in), nil
}

var (
	routeGVK     = routev1.GroupVersion.WithKind("Route")
	httpRouteGVK = schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: "HTTPRoute"}
)

// exposer builds the object of one type of exposure.
type exposer struct {
	kind  schema.GroupVersionKind // set if some API servers do not serve the kind
	build func(Exposed, engine.Inputs) engine.Child
	// host returns the admitted host of the object, with the port unless it is the default
	// of the scheme; "" before the object is admitted.
	host func(Exposed, engine.Inputs) string
	// scheme returns the default of exposure.scheme.
	scheme func(Exposed) commonv1.Scheme
}

var exposers = map[commonv1.ExposureType]exposer{
	commonv1.ExposureRoute:        {kind: routeGVK, build: route, host: routeHost, scheme: alwaysHTTPS},
	commonv1.ExposureIngress:      {build: ingress, host: ingressHost, scheme: schemeByCertificate},
	commonv1.ExposureGateway:      {kind: httpRouteGVK, build: httpRoute, host: httpRouteHost, scheme: alwaysHTTPS},
	commonv1.ExposureLoadBalancer: {build: loadBalancer, host: loadBalancerHost, scheme: schemeOfPort},
}

func alwaysHTTPS(Exposed) commonv1.Scheme { return commonv1.SchemeHTTPS }

func schemeByCertificate(e Exposed) commonv1.Scheme {
	if e.Exposure.TLSSecretRef != nil {
		return commonv1.SchemeHTTPS
	}
	return commonv1.SchemeHTTP
}

func schemeOfPort(e Exposed) commonv1.Scheme {
	if e.Service.Port.TLS() {
		return commonv1.SchemeHTTPS
	}
	return commonv1.SchemeHTTP
}

// Needs requires the kind of the exposure's type. Automatic uses Routes if the API server
// serves Routes.
func (e Exposed) Needs() []engine.Need {
	var needs []engine.Need
	if e.automatic() {
		needs = append(needs, engine.Served(routeGVK).Optional(), engine.AllOf(engine.Served(routeGVK), e.presentRoute()).Optional())
	} else if e.Exposure.Type == commonv1.ExposureRoute {
		needs = append(needs, engine.Served(routeGVK), e.presentRoute().Optional())
	} else if kind := exposers[e.Exposure.Type].kind; kind.Kind != "" {
		needs = append(needs, engine.Served(kind))
	}
	if secret := e.Exposure.TLSSecretRef; secret != nil {
		needs = append(needs, engine.Secret(secret.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey))
	}
	return needs
}

// presentRoute finds the Route, whose changes are no input.
func (e Exposed) presentRoute() engine.Need {
	return engine.Existing(&routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: e.Service.Instance}}).Counting(func(client.Object) any { return nil })
}

func (e Exposed) automatic() bool {
	return e.Exposure.Type == commonv1.ExposureAutomatic || e.Exposure.Type == ""
}

// exposer returns the exposer of the type, and false if no object exposes the service.
func (e Exposed) exposer(in engine.Inputs) (exposer, bool) {
	wanted := e.Exposure.Type
	if e.automatic() {
		wanted = commonv1.ExposureRoute
		if !in.Served(routeGVK) {
			wanted = commonv1.ExposureNone
		}
	}
	found, exposes := exposers[wanted]
	return found, exposes
}

// Build builds the object that exposes the service, if there is one.
func (e Exposed) Build(in engine.Inputs) []engine.Child {
	selected, exposes := e.exposer(in)
	if !exposes {
		return nil
	}
	return []engine.Child{selected.build(e, in)}
}

// Endpoints returns the addresses. The public address is that of the object that exposes the
// service, or of the Service if no object exposes it. Until a new object is admitted, the
// former public address stays.
func (e Exposed) Endpoints(namespace string, former []commonv1.Endpoint, in engine.Inputs) []commonv1.Endpoint {
	internal := address(schemeOfPort(e), e.Service.Address(namespace)) + e.Path
	public := internal
	if selected, exposes := e.exposer(in); exposes {
		public = commonv1.URLOf(former, commonv1.InterfacePublic)
		if host := selected.host(e, in); host != "" {
			public = address(cmp.Or(e.Exposure.Scheme, selected.scheme(e)), host) + e.Path
		}
	}
	var endpoints []commonv1.Endpoint
	if public != "" {
		endpoints = append(endpoints, commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: public})
	}
	return append(endpoints, commonv1.Endpoint{Interface: commonv1.InterfaceInternal, URL: internal})
}

func address(scheme commonv1.Scheme, host string) string {
	return strings.ToLower(string(scheme)) + "://" + host
}
