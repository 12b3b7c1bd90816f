package cell

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

func conductorNamed(cr *novav1.NovaCell) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(cr.Name + "-conductor")}
}

// conductor builds the NovaConductor, which also synchronizes the schema of the cell's
// database, and the certificate authorities of the connections, which are accepted now.
func conductor(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	child := conductorNamed(cr)
	spec := cr.Spec.Conductor.Spec("", commonv1.ServiceDefaults{})
	spec.RestartTriggers = cr.Spec.RestartTriggers
	child.Spec = conductorv1.NovaConductorSpec{
		ServiceSpec:         spec,
		Role:                conductorv1.RoleCell,
		DatabaseSecretRef:   commonv1.SecretReference{Name: ofDatabase},
		MessageBusSecretRef: commonv1.SecretReference{Name: ofMessageBus},
		IdentitySecretRef:   &cr.Spec.IdentitySecretRef,
		Rollout:             cr.Spec.Rollout,
		SharedConnections:   cr.Spec.SharedConnections,
	}
	if cr.Spec.APIDatabaseAccess == novav1.APIDatabaseAccessEnabled {
		child.Spec.APIDatabaseSecretRef = &cr.Spec.APIDatabaseSecretRef
	}
	_, all, err := authorities(cr, in)
	return append(all, child), err
}

func withoutServices(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(metadata.Named(metadataName(cr))), engine.Absent(consoleNamed(cr)), engine.Absent(conductorNamed(cr))}, nil
}
