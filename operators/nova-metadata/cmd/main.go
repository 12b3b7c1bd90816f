// Command nova-metadata-operator runs the operator of NovaMetadata.
package main

import (
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
	"asterism.dev/operators/nova-metadata/internal/metadata"
)

func main() {
	operator.Main("nova-metadata", novav1.AddToScheme, metadata.Service)
}
