package nova

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/metadata"
)

func withoutHTTPServices(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return absent(apiNamed(cr), metadata.Named(metadataName(cr))), nil
}

func withoutScheduler(cr *novav1.Nova, _ engine.Inputs) ([]engine.Child, error) {
	return absent(schedulerNamed(cr)), nil
}

func children(*novav1.Nova) []engine.Need { return []engine.Need{engine.Children()} }

func withoutCells(cr *novav1.Nova, in engine.Inputs) ([]engine.Child, error) {
	var cells []client.Object
	for _, cell := range cr.Spec.Cells {
		cells = append(cells, cellNamed(cr, cell))
	}
	for _, cell := range unlisted(cr, in) {
		cells = append(cells, &novav1.NovaCell{ObjectMeta: named(cell.Name)})
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
