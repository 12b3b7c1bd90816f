package cell

import (
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// migrateData builds the Job of the online data migrations. Some read the API database, so that
// the Job has it also in a cell whose conductor must not reach it.
func migrateData(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.DataMigrations == "" {
		return nil, nil
	}
	service, err := manage(cr, in)
	if err != nil {
		return nil, err
	}
	return service.Job(in, nova.MigrateData(cr.Spec.DataMigrations))
}
