package api

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

var (
	routeGVK     = routev1.GroupVersion.WithKind("Route")
	httpRouteGVK = schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: "HTTPRoute"}
)

// wholeWeight is the default of a Route. An unset weight would be sent as null.
const wholeWeight = int32(100)

// exposer builds the object of one type of exposure.
type exposer struct {
	kind  schema.GroupVersionKind // set if some API servers do not serve the kind
	build func(*novav1.NovaAPI) engine.Child
	// host returns the admitted host of the object, with the port unless it is the default
	// of the scheme; "" before the object is admitted.
	host func(*novav1.NovaAPI, engine.Inputs) string
	// scheme returns the default of exposure.scheme.
	scheme func(*novav1.NovaAPI) commonv1.Scheme
}

var exposers = map[commonv1.ExposureType]exposer{
	commonv1.ExposureRoute:        {kind: routeGVK, build: route, host: routeHost, scheme: always(commonv1.SchemeHTTPS)},
	commonv1.ExposureIngress:      {build: ingress, host: ingressHost, scheme: schemeByCertificate},
	commonv1.ExposureGateway:      {kind: httpRouteGVK, build: httpRoute, host: httpRouteHost, scheme: always(commonv1.SchemeHTTPS)},
	commonv1.ExposureLoadBalancer: {build: loadBalancer, host: loadBalancerHost, scheme: always(commonv1.SchemeHTTP)},
}

// exposureNeeds requires the kind of the exposure's type. Automatic uses Routes if the API
// server serves Routes.
func exposureNeeds(cr *novav1.NovaAPI) []engine.Need {
	var needs []engine.Need
	exposure := cr.Spec.Exposure
	if exposure.Type == commonv1.ExposureAutomatic || exposure.Type == "" {
		needs = append(needs, engine.Served(routeGVK).Optional())
	} else if kind := exposers[exposure.Type].kind; kind.Kind != "" {
		needs = append(needs, engine.Served(kind))
	}
	if exposure.TLSSecretRef != nil {
		needs = append(needs, engine.Secret(exposure.TLSSecretRef.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey))
	}
	return needs
}

// exposerOf returns the exposer of the spec, and false if no object exposes the API.
func exposerOf(cr *novav1.NovaAPI, in engine.Inputs) (exposer, bool) {
	wanted := cr.Spec.Exposure.Type
	if wanted == commonv1.ExposureAutomatic || wanted == "" {
		wanted = commonv1.ExposureRoute
		if !in.Served(routeGVK) {
			wanted = commonv1.ExposureNone
		}
	}
	found, exposes := exposers[wanted]
	return found, exposes
}

func exposed(cr *novav1.NovaAPI, in engine.Inputs) ([]engine.Child, error) {
	selected, exposes := exposerOf(cr, in)
	if !exposes {
		return nil, nil
	}
	return []engine.Child{selected.build(cr)}, nil
}

// route terminates TLS at the router. The router forwards requests over HTTP.
func route(cr *novav1.NovaAPI) engine.Child {
	tls := &routev1.TLSConfig{
		Termination:                   routev1.TLSTerminationEdge,
		InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
	}
	if secret := cr.Spec.Exposure.TLSSecretRef; secret != nil {
		tls.ExternalCertificate = &routev1.LocalObjectReference{Name: secret.Name}
	}
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: cr.Name, Annotations: cr.Spec.Exposure.Annotations},
		Spec: routev1.RouteSpec{
			Host: cr.Spec.Exposure.Hostname,
			To:   routev1.RouteTargetReference{Kind: "Service", Name: cr.Name, Weight: new(wholeWeight)},
			Port: &routev1.RoutePort{TargetPort: intstr.FromString(describe(cr).Port.Name)},
			TLS:  tls,
		},
	}
}

// routeHost returns the host at the first router that has admitted the Route. A refused
// host may belong to another Route.
func routeHost(cr *novav1.NovaAPI, in engine.Inputs) string {
	route, ok := engine.Get[*routev1.Route](in, cr.Name)
	if !ok {
		return ""
	}
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue {
				return ingress.Host
			}
		}
	}
	return ""
}

func ingress(cr *novav1.NovaAPI) engine.Child {
	exposure := cr.Spec.Exposure
	spec := applynetworkingv1.IngressSpec().WithRules(applynetworkingv1.IngressRule().WithHost(exposure.Hostname).
		WithHTTP(applynetworkingv1.HTTPIngressRuleValue().WithPaths(applynetworkingv1.HTTPIngressPath().
			WithPath("/").WithPathType(networkingv1.PathTypePrefix).
			WithBackend(applynetworkingv1.IngressBackend().WithService(applynetworkingv1.IngressServiceBackend().
				WithName(cr.Name).WithPort(applynetworkingv1.ServiceBackendPort().WithName(describe(cr).Port.Name)))))))
	if exposure.TLSSecretRef != nil {
		spec.WithTLS(applynetworkingv1.IngressTLS().WithHosts(exposure.Hostname).WithSecretName(exposure.TLSSecretRef.Name))
	}
	if exposure.IngressClassName != "" {
		spec.WithIngressClassName(exposure.IngressClassName)
	}
	return applynetworkingv1.Ingress(cr.Name, "").WithAnnotations(exposure.Annotations).WithSpec(spec)
}

func ingressHost(cr *novav1.NovaAPI, in engine.Inputs) string {
	ingress, ok := engine.Get[*networkingv1.Ingress](in, cr.Name)
	if !ok || len(ingress.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	return cr.Spec.Exposure.Hostname
}

func httpRoute(cr *novav1.NovaAPI) engine.Child {
	exposure, port := cr.Spec.Exposure, describe(cr).Port.Number
	parent := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(exposure.ParentRef.Name)}
	if exposure.ParentRef.Namespace != "" {
		parent.Namespace = new(gatewayv1.Namespace(exposure.ParentRef.Namespace))
	}
	if exposure.ParentRef.SectionName != "" {
		parent.SectionName = new(gatewayv1.SectionName(exposure.ParentRef.SectionName))
	}
	service := gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(cr.Name), Port: new(port)}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: cr.Name, Annotations: exposure.Annotations}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(exposure.Hostname)}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: service}}}}}
	return route
}

func httpRouteHost(cr *novav1.NovaAPI, in engine.Inputs) string {
	route, ok := engine.Get[*gatewayv1.HTTPRoute](in, cr.Name)
	if !ok || !slices.ContainsFunc(route.Status.Parents, func(parent gatewayv1.RouteParentStatus) bool {
		return meta.IsStatusConditionTrue(parent.Conditions, string(gatewayv1.RouteConditionAccepted)) &&
			meta.IsStatusConditionTrue(parent.Conditions, string(gatewayv1.RouteConditionResolvedRefs))
	}) {
		return ""
	}
	return cr.Spec.Exposure.Hostname
}

func loadBalancerName(cr *novav1.NovaAPI) string { return cr.Name + "-public" }

func loadBalancer(cr *novav1.NovaAPI) engine.Child {
	service := describe(cr)
	return applycorev1.Service(loadBalancerName(cr), "").WithAnnotations(cr.Spec.Exposure.Annotations).WithSpec(applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithSelector(engine.Selector(service.Name, service.Instance)).
		WithPorts(applycorev1.ServicePort().WithName(service.Port.Name).WithPort(service.Port.Number).WithTargetPort(intstr.FromString(service.Port.Name))))
}

func loadBalancerHost(cr *novav1.NovaAPI, in engine.Inputs) string {
	service, ok := engine.Get[*corev1.Service](in, loadBalancerName(cr))
	if !ok || len(service.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	first := service.Status.LoadBalancer.Ingress[0]
	return net.JoinHostPort(cmp.Or(first.Hostname, first.IP), strconv.Itoa(int(describe(cr).Port.Number)))
}

func always(scheme commonv1.Scheme) func(*novav1.NovaAPI) commonv1.Scheme {
	return func(*novav1.NovaAPI) commonv1.Scheme { return scheme }
}

func schemeByCertificate(cr *novav1.NovaAPI) commonv1.Scheme {
	if cr.Spec.Exposure.TLSSecretRef != nil {
		return commonv1.SchemeHTTPS
	}
	return commonv1.SchemeHTTP
}

// address returns the address of the exposed API, "" while no object is admitted.
func (e exposer) address(cr *novav1.NovaAPI, in engine.Inputs) string {
	host := e.host(cr, in)
	if host == "" {
		return ""
	}
	return strings.ToLower(string(cmp.Or(cr.Spec.Exposure.Scheme, e.scheme(cr)))) + "://" + host
}
