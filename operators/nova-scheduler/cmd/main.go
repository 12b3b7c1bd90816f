// Command nova-scheduler-operator runs the operator of NovaScheduler.
package main

import (
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-scheduler/api/v1alpha1"
	"asterism.dev/operators/nova-scheduler/internal/scheduler"
)

func main() {
	operator.Main("nova-scheduler", novav1.AddToScheme, scheduler.Service)
}
