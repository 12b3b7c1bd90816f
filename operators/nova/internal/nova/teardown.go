package nova

import (
	"context"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// without removes children and waits until they are gone.
func without(children ...func(*novav1.Nova) engine.Child) func(*novav1.Nova, engine.Inputs) ([]engine.Child, error) {
	return func(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
		var all []engine.Child
		for _, child := range children {
			all = append(all, engine.Absent(child(cr)))
		}
		return all, nil
	}
}

func withoutCells(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	var all []engine.Child
	for _, cell := range cr.Spec.Cells {
		all = append(all, engine.Absent(&novav1.NovaCell{ObjectMeta: named(cellName(cr, cell))}))
	}
	return all, nil
}

func withoutCredentials(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(engine.Unowned(applycorev1.Secret(credentialsName(cr), "")))}, nil
}

func withdrawNeeds(cr *novav1.Nova) []engine.Need { return identity(cr).TeardownNeeds() }

func withdraw(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, identity(cr).Withdraw(ctx, in)
}

func removeIdentity(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, identity(cr).Remove(ctx, in)
}

func removeMessageBusNeeds(cr *novav1.Nova) []engine.Need { return messageBus(cr).TeardownNeeds() }

func removeMessageBus(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, messageBus(cr).Remove(ctx, in)
}

func removeDatabaseNeeds(cr *novav1.Nova) []engine.Need { return apiDatabase(cr).TeardownNeeds() }

func removeAPIDatabase(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, apiDatabase(cr).Remove(ctx, in)
}

func removeCell0Database(ctx context.Context, cr *novav1.Nova, in engine.Inputs) (engine.Observed, error) {
	return nil, cell0Database(cr).Remove(ctx, in)
}
