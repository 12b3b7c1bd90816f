// Command nova-api-operator runs the operator of NovaAPI.
package main

import (
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
	"asterism.dev/operators/nova-api/internal/api"
)

func main() {
	scheme := runtime.NewSchemeBuilder(novav1.AddToScheme, routev1.Install, gatewayv1.Install)
	operator.Main("nova-api", scheme.AddToScheme, api.Service)
}
