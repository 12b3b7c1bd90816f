package cell

import (
	"slices"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"

	computev1 "asterism.dev/operators/nova-compute/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// active returns the computes that are not retired.
func active(cr *novav1.NovaCell) []novav1.Compute {
	isRetired := func(c novav1.Compute) bool { return c.State == novav1.ComputeRetired }
	return slices.DeleteFunc(slices.Clone(cr.Spec.Computes), isRetired)
}

func children(*novav1.NovaCell) []engine.Need { return []engine.Need{engine.Children()} }

// computeNeeds waits for the conductor, without which no compute starts, and whose release
// must not be older than the release of a compute. A cell without computes does not wait.
func computeNeeds(cr *novav1.NovaCell) []engine.Need {
	needs := children(cr)
	if len(active(cr)) > 0 {
		needs = append(needs, engine.Condition(conductorNamed(cr), commonv1.ConditionReady))
	}
	return needs
}

// computeName is the name of the NovaCompute, and of its host unless its driver is Libvirt.
func computeName(cr *novav1.NovaCell, compute novav1.Compute) string {
	return cr.Name + "-" + string(compute.Name)
}

// computes builds one NovaCompute for each compute that is not retired, and deletes the
// others.
func computes(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	var all []engine.Child
	var names []string
	for _, compute := range active(cr) {
		child := &computev1.NovaCompute{
			ObjectMeta: named(computeName(cr, compute)),
			Spec: computev1.NovaComputeSpec{
				ComputeSettings:        compute.ComputeSettings,
				ComputeConfigSecretRef: commonv1.SecretReference{Name: computeConfigName(cr)},
				ContainerImage:         compute.ContainerImage,
				ServiceSettings:        compute.ServiceSettings,
			},
		}
		all, names = append(all, child), append(names, child.Name)
	}
	return append(all, removed(in, names)...), nil
}

func withoutComputes(_ *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	return removed(in, nil), nil
}

// removed deletes the NovaComputes of the cell, except some. Each removes itself while its pod
// and its configuration still exist.
func removed(in engine.Inputs, kept []string) []engine.Child {
	var all []engine.Child
	for _, child := range engine.ChildrenOf[*computev1.NovaCompute](in) {
		if !slices.Contains(kept, child.Name) {
			all = append(all, engine.TornDown(&computev1.NovaCompute{ObjectMeta: named(child.Name)}))
		}
	}
	return all
}
