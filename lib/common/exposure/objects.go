package exposure

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// wholeWeight is the default of a Route. An unset weight would be sent as null.
const wholeWeight = int32(100)

// hostAnnotation has the host name of exposure.hostname. OpenShift does not clear the host of a Route,
// so one whose host name is no longer wanted is deleted, and created again.
const hostAnnotation = "asterism.dev/hostname"

func route(e Exposed, in engine.Inputs) engine.Child {
	name := e.Service.Instance
	if present, exists := engine.Get[*routev1.Route](in, name); exists && e.Exposure.Hostname == "" && present.Annotations[hostAnnotation] != "" {
		return engine.Absent(&routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: e.routeAnnotations()},
		Spec: routev1.RouteSpec{
			Host: e.Exposure.Hostname,
			To:   routev1.RouteTargetReference{Kind: "Service", Name: name, Weight: new(wholeWeight)},
			Port: &routev1.RoutePort{TargetPort: intstr.FromString(e.Service.Port.Name)},
			TLS:  e.routeTLS(in),
		},
	}
}

// routeTLS terminates TLS at the router, which forwards requests over HTTP. To a service that
// serves TLS, the router passes TLS through, and the service has the certificate for the public
// host; or the router connects to it by TLS, and verifies it with ca.crt of its Secret. Without
// this key, the router trusts the authority of OpenShift's service certificates.
func (e Exposed) routeTLS(in engine.Inputs) *routev1.TLSConfig {
	tls := &routev1.TLSConfig{
		Termination:                   routev1.TLSTerminationEdge,
		InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
	}
	switch port := e.Service.Port; {
	case port.TLS() && !e.Reencrypt:
		tls.Termination = routev1.TLSTerminationPassthrough
		return tls
	case port.TLS():
		tls.Termination = routev1.TLSTerminationReencrypt
		tls.DestinationCACertificate = string(in.Secret(port.TLSSecret)[config.KeyCA])
	}
	if secret := e.Exposure.TLSSecretRef; secret != nil {
		tls.ExternalCertificate = &routev1.LocalObjectReference{Name: secret.Name}
	}
	return tls
}

func (e Exposed) routeAnnotations() map[string]string {
	all := map[string]string{}
	maps.Copy(all, e.RouteAnnotations)
	if e.TimeoutSeconds > 0 {
		all["haproxy.router.openshift.io/timeout"] = fmt.Sprintf("%ds", e.TimeoutSeconds)
	}
	maps.Copy(all, e.Exposure.Annotations)
	if e.Exposure.Hostname != "" {
		all[hostAnnotation] = e.Exposure.Hostname
	}
	return all
}

// ingressAnnotations has the time-outs of ingress-nginx, and the protocol of a service that serves
// TLS. Other controllers ignore them.
func (e Exposed) ingressAnnotations() map[string]string {
	all := map[string]string{}
	maps.Copy(all, e.IngressAnnotations)
	if e.Service.Port.TLS() {
		all["nginx.ingress.kubernetes.io/backend-protocol"] = "HTTPS"
	}
	if e.TimeoutSeconds > 0 {
		all["nginx.ingress.kubernetes.io/proxy-read-timeout"] = fmt.Sprint(e.TimeoutSeconds)
		all["nginx.ingress.kubernetes.io/proxy-send-timeout"] = fmt.Sprint(e.TimeoutSeconds)
	}
	maps.Copy(all, e.Exposure.Annotations)
	return all
}

// routeHost returns the host at the first router that has admitted the Route. A refused
// host may belong to another Route.
func routeHost(e Exposed, in engine.Inputs) string {
	route, ok := engine.Get[*routev1.Route](in, e.Service.Instance)
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

func ingress(e Exposed, _ engine.Inputs) engine.Child {
	name, exposure := e.Service.Instance, e.Exposure
	spec := applynetworkingv1.IngressSpec().WithRules(applynetworkingv1.IngressRule().WithHost(exposure.Hostname).
		WithHTTP(applynetworkingv1.HTTPIngressRuleValue().WithPaths(applynetworkingv1.HTTPIngressPath().
			WithPath("/").WithPathType(networkingv1.PathTypePrefix).
			WithBackend(applynetworkingv1.IngressBackend().WithService(applynetworkingv1.IngressServiceBackend().
				WithName(name).WithPort(applynetworkingv1.ServiceBackendPort().WithName(e.Service.Port.Name)))))))
	if exposure.TLSSecretRef != nil {
		spec.WithTLS(applynetworkingv1.IngressTLS().WithHosts(exposure.Hostname).WithSecretName(exposure.TLSSecretRef.Name))
	}
	if exposure.IngressClassName != "" {
		spec.WithIngressClassName(exposure.IngressClassName)
	}
	return applynetworkingv1.Ingress(name, "").WithAnnotations(e.ingressAnnotations()).WithSpec(spec)
}

func ingressHost(e Exposed, in engine.Inputs) string {
	ingress, ok := engine.Get[*networkingv1.Ingress](in, e.Service.Instance)
	if !ok || len(ingress.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	return e.Exposure.Hostname
}

func httpRoute(e Exposed, _ engine.Inputs) engine.Child {
	name, exposure := e.Service.Instance, e.Exposure
	parent := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(exposure.ParentRef.Name)}
	if exposure.ParentRef.Namespace != "" {
		parent.Namespace = new(gatewayv1.Namespace(exposure.ParentRef.Namespace))
	}
	if exposure.ParentRef.SectionName != "" {
		parent.SectionName = new(gatewayv1.SectionName(exposure.ParentRef.SectionName))
	}
	service := gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: new(e.Service.Port.Number)}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: exposure.Annotations}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
	route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(exposure.Hostname)}
	rule := gatewayv1.HTTPRouteRule{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: service}}}}
	if e.TimeoutSeconds > 0 {
		rule.Timeouts = &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayv1.Duration(fmt.Sprintf("%ds", e.TimeoutSeconds)))}
	}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{rule}
	return route
}

func httpRouteHost(e Exposed, in engine.Inputs) string {
	route, ok := engine.Get[*gatewayv1.HTTPRoute](in, e.Service.Instance)
	if !ok || !slices.ContainsFunc(route.Status.Parents, func(parent gatewayv1.RouteParentStatus) bool {
		return string(parent.ParentRef.Name) == e.Exposure.ParentRef.Name &&
			reports(parent, gatewayv1.RouteConditionAccepted, route) &&
			reports(parent, gatewayv1.RouteConditionResolvedRefs, route)
	}) {
		return ""
	}
	return e.Exposure.Hostname
}

// reports tells whether a Gateway reports a condition of the present HTTPRoute: a former one may have
// had another host.
func reports(parent gatewayv1.RouteParentStatus, kind gatewayv1.RouteConditionType, route *gatewayv1.HTTPRoute) bool {
	condition := meta.FindStatusCondition(parent.Conditions, string(kind))
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == route.Generation
}

func (e Exposed) loadBalancerName() string { return e.Service.Instance + "-public" }

func loadBalancer(e Exposed, _ engine.Inputs) engine.Child {
	service, port := e.Service, e.Service.Port
	return applycorev1.Service(e.loadBalancerName(), "").WithAnnotations(e.Exposure.Annotations).WithSpec(applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithSelector(engine.Selector(service.Name, service.Instance)).
		WithPorts(applycorev1.ServicePort().WithName(port.Name).WithPort(port.Number).WithTargetPort(intstr.FromString(port.Name))))
}

func loadBalancerHost(e Exposed, in engine.Inputs) string {
	service, ok := engine.Get[*corev1.Service](in, e.loadBalancerName())
	if !ok || len(service.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	first := service.Status.LoadBalancer.Ingress[0]
	return net.JoinHostPort(cmp.Or(first.Hostname, first.IP), strconv.Itoa(int(e.Service.Port.Number)))
}
