// Command nova-api-operator runs the operator of NovaAPI.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/exposure"
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
	"asterism.dev/operators/nova-api/internal/api"
)

func main() {
	scheme := runtime.NewSchemeBuilder(novav1.AddToScheme, exposure.AddToScheme)
	operator.Main("nova-api", scheme.AddToScheme, api.Service)
}
