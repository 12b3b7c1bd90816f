package cell

import (
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	conductorv1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

func conductorNamed(cr *novav1.NovaCell) *conductorv1.NovaConductor {
	return &conductorv1.NovaConductor{ObjectMeta: named(cr.Name + "-conductor")}
}

// conductorNeeds is the superconductor, which may come later: its CA files are those of all mappings.
func conductorNeeds(cr *novav1.NovaCell) []engine.Need {
	if cr.Spec.APIDatabaseAccess != novav1.APIDatabaseAccessEnabled {
		return nil
	}
	return []engine.Need{engine.Existing(superconductorOf(cr)).Optional()}
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
	files, all, err := authorities(cr, in)
	if cr.Spec.APIDatabaseAccess == novav1.APIDatabaseAccessEnabled {
		child.Spec.APIDatabaseSecretRef = &cr.Spec.APIDatabaseSecretRef
		child.Spec.Cell0DatabaseSecretRef = cr.Spec.Cell0DatabaseSecretRef
		child.Spec.CAFileRefs = mappedFiles(cr, in, files)
	}
	return append(all, child), err
}

// mappedFiles returns the CA files for the mappings that a conductor with access to the API database
// reads: when it starts, it asks every cell for the versions of its services. Those of its own cell
// are given at once, so that it does not restart for them.
func mappedFiles(cr *novav1.NovaCell, in engine.Inputs, own []commonv1.KeyReference) []commonv1.KeyReference {
	files := slices.Clone(own)
	if super, ok := engine.Get[*conductorv1.NovaConductor](in, cr.Spec.SuperconductorRef.Name); ok {
		for _, file := range super.Spec.CAFileRefs {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	slices.SortFunc(files, func(a, b commonv1.KeyReference) int { return strings.Compare(a.Key, b.Key) })
	return files
}

func withoutServices(cr *novav1.NovaCell, _ engine.Inputs) ([]engine.Child, error) {
	return []engine.Child{engine.Absent(metadata.Named(metadataName(cr))), engine.Absent(consoleNamed(cr)), engine.Absent(conductorNamed(cr))}, nil
}
