package cell

import (
	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func theConductor(cr *novav1.NovaCell) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(cr.Name + "-conductor")}
}

// conductor also brings the cell's database to its schema.
func conductor(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	made := theConductor(cr)
	made.Spec = conductorv1.NovaConductorSpec{
		ServiceSpec:         cr.Spec.Conductor.Spec("", commonv1.PodSettings{}),
		Role:                conductorv1.RoleCell,
		DatabaseSecretRef:   commonv1.SecretReference{Name: ofDatabase},
		MessageBusSecretRef: commonv1.SecretReference{Name: ofMessageBus},
		IdentitySecretRef:   &cr.Spec.IdentitySecretRef,
	}
	if cr.Spec.APIAccess == novav1.APIAccessEnabled {
		made.Spec.APIDatabaseSecretRef = &cr.Spec.APIDatabaseSecretRef
	}
	return []engine.Child{made}, nil
}

func withoutConductor(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(theConductor(cr))}, nil
}
