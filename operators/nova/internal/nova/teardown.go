package nova

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func withoutAPI(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return absent(apiNamed(cr), metadataNamed(cr)), nil
}

func withoutScheduler(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return absent(schedulerNamed(cr)), nil
}

func withoutCells(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	var cells []client.Object
	for _, cell := range cr.Spec.Cells {
		cells = append(cells, cellNamed(cr, cell))
	}
	return absent(cells...), nil
}

func withoutSuperconductor(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return absent(superconductorNamed(cr)), nil
}

func absent(objects ...client.Object) []engine.Child {
	var all []engine.Child
	for _, object := range objects {
		all = append(all, engine.Absent(object))
	}
	return all
}
