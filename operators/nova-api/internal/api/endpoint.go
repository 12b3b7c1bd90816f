package api

import (
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

var routeGVK = routev1.GroupVersion.WithKind("Route")

// version is the path of the API that the catalog names.
const version = "/v2.1"

// wholeWeight is the default, which is stated because unset it would be sent as null.
const wholeWeight = int32(100)

// routes: exposure Route insists on Routes, Automatic takes them where they are served.
func routes(cr *novav1.NovaAPI) []engine.Need {
	switch cr.Spec.Exposure {
	case commonv1.ExposureNone:
		return nil
	case commonv1.ExposureRoute:
		return []engine.Need{engine.Served(routeGVK)}
	}
	return []engine.Need{engine.Served(routeGVK).Optional()}
}

// route ends TLS at the router and sends plain requests on.
func route(cr *novav1.NovaAPI, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.Exposure == commonv1.ExposureNone || !in.Served(routeGVK) {
		return nil, nil
	}
	return []engine.Child{&routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: cr.Name},
		Spec: routev1.RouteSpec{
			To:   routev1.RouteTargetReference{Kind: "Service", Name: cr.Name, Weight: new(wholeWeight)},
			Port: &routev1.RoutePort{TargetPort: intstr.FromString(describe(cr).Port.Name)},
			TLS: &routev1.TLSConfig{
				Termination:                   routev1.TLSTerminationEdge,
				InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect,
			},
		},
	}}, nil
}

// endpoints: the public address is the Route's once a router has admitted the Route;
// without Routes it is the Service's. Until a router has admitted a new Route, the
// public address that was known before stays.
func endpoints(cr *novav1.NovaAPI, in engine.Inputs) {
	internal := "http://" + describe(cr).Address(cr.Namespace) + version
	public := internal
	if made, ok := engine.Get[*routev1.Route](in, cr.Name); ok {
		public = known(cr, commonv1.InterfacePublic)
		if host := admittedHost(made); host != "" {
			public = "https://" + host + version
		}
	}
	cr.Status.Endpoints = nil
	if public != "" {
		cr.Status.Endpoints = append(cr.Status.Endpoints, commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: public})
	}
	cr.Status.Endpoints = append(cr.Status.Endpoints, commonv1.Endpoint{Interface: commonv1.InterfaceInternal, URL: internal})
}

func known(cr *novav1.NovaAPI, of commonv1.EndpointInterface) string {
	for _, endpoint := range cr.Status.Endpoints {
		if endpoint.Interface == of {
			return endpoint.URL
		}
	}
	return ""
}

// admittedHost is the host at the first router that has admitted the Route; a
// host that was refused may be somebody else's.
func admittedHost(route *routev1.Route) string {
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue {
				return ingress.Host
			}
		}
	}
	return ""
}
