package cell

import (
	"context"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// The mapping stays with the retained database: a Nova of the same name that is
// created again finds its cell and the servers in it.

func withoutConductor(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(theConductor(cr))}, nil
}

func withoutCredentials(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(engine.Unowned(applycorev1.Secret(credentialsName(cr), "")))}, nil
}

func removeMessageBusNeeds(cr *novav1.NovaCell) []engine.Need { return messageBus(cr).TeardownNeeds() }

func removeMessageBus(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	return nil, messageBus(cr).Remove(ctx, in)
}

func removeDatabaseNeeds(cr *novav1.NovaCell) []engine.Need { return database(cr).TeardownNeeds() }

func removeDatabase(ctx context.Context, cr *novav1.NovaCell, in engine.Inputs) (engine.Observed, error) {
	return nil, database(cr).Remove(ctx, in)
}
