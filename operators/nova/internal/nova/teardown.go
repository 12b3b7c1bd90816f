package nova

import (
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
		all = append(all, engine.Absent(theCell(cr, cell)))
	}
	return all, nil
}
