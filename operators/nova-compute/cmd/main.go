// Command nova-compute-operator runs the operator of NovaCompute.
package main

import (
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	"asterism.dev/operators/nova-compute/internal/compute"
)

func main() {
	operator.Main("nova-compute", novav1.AddToScheme, compute.Service)
}
