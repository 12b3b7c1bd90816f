// Command nova-metadata-operator runs the operator of NovaMetadata.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/exposure"
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	"asterism.dev/operators/nova-metadata/internal/metadata"
)

func main() {
	scheme := runtime.NewSchemeBuilder(novav1.AddToScheme, exposure.AddToScheme)
	operator.Main("nova-metadata", scheme.AddToScheme, metadata.Service)
}
