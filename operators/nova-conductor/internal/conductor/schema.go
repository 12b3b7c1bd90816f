package conductor

import (
	"time"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/workload"

	novav1 "asterism.dev/operators/nova-conductor/api/v1alpha1"
)

// schemaDeadline is more than a sync of large tables takes.
const schemaDeadline = 24 * time.Hour

// schema builds the Job that syncs the databases to the schema of the image. The Job runs
// again for another database or image only. A sync only adds, and a repeated sync changes
// nothing (nova doc: cli/nova-manage). Without --local_cell, the sync would also change
// cell0 through its mapping. MariaDB does not undo the step of a killed sync, and the next sync
// fails at its first repeated statement: so the Job may take long, and runs to its end also when the
// image or the database changes again.
func schema(cr *novav1.NovaConductor, in engine.Inputs) ([]engine.Child, error) {
	if cr.Spec.Schema.Management == novav1.SchemaExternal {
		return nil, nil
	}
	conductor := describe(cr)
	script := "nova-manage db sync --local_cell"
	if cr.Spec.Role == novav1.RoleSuper {
		script = "nova-manage api_db sync\n" + script
	}
	return conductor.Job(in, workload.Task{
		Purpose: "db", Script: script, Depends: []string{conductor.DatabaseHash(in), conductor.Image()}, Deadline: schemaDeadline, Uninterrupted: true,
	})
}
