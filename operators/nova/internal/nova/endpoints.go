package nova

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	apiv1 "asterism.dev/operators/nova-api/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// endpointNeeds waits until the NovaAPI knows its addresses, for example the host of its
// Route.
func endpointNeeds(cr *novav1.Nova) []engine.Need {
	child := apiNamed(cr)
	return []engine.Need{
		engine.Condition(child, apiv1.ConditionEndpointReady),
		engine.Existing(child).Counting(func(obj client.Object) any { return obj.(*apiv1.NovaAPI).Status.Endpoints }), //nolint:forcetypeassert // child is a NovaAPI
	}
}

func reportEndpoints(cr *novav1.Nova, in engine.Inputs) { cr.Status.Endpoints = endpoints(cr, in) }

// endpoints returns the addresses of the NovaAPI, or of spec.api.endpoints, for example of
// a load balancer that the user operates.
func endpoints(cr *novav1.Nova, in engine.Inputs) []commonv1.Endpoint {
	child, ok := engine.Get[*apiv1.NovaAPI](in, apiName(cr))
	if !ok {
		return nil
	}
	var all []commonv1.Endpoint
	for _, endpoint := range child.Status.Endpoints {
		for _, override := range cr.Spec.API.Endpoints {
			if override.Interface == endpoint.Interface {
				endpoint.URL = override.URL
			}
		}
		all = append(all, endpoint)
	}
	return all
}
