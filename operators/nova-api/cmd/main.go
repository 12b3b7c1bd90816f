// Command nova-api-operator runs the operator of NovaAPI.
package main

import (
	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
	"asterism.dev/operators/nova-api/internal/api"
)

func main() {
	scheme := runtime.NewSchemeBuilder(novav1.AddToScheme, routev1.Install)
	operator.Main("nova-api", scheme.AddToScheme, api.Service)
}
