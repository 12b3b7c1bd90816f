// Command nova-conductor-operator runs the operator of NovaConductor.
package main

import (
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	"asterism.dev/operators/nova-conductor/internal/conductor"
)

func main() {
	operator.Main("nova-conductor", novav1.AddToScheme, conductor.Service, operator.HoldUpgrade(&novav1.NovaConductor{}))
}
