// Command shared-volume-operator runs the operator of shared storage.
package main

import (
	"asterism.dev/lib/common/operator"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

func main() {
	operator.Main("shared-volume", storagev1.AddToScheme, volume.Service)
}
