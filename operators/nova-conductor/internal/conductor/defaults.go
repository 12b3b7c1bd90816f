package conductor

import (
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/nova"
)

// graceSeconds is the time in which a stopped service finishes its work, the default of
// oslo.service.
const graceSeconds = 60

// defaults are the options that the operator sets and a user may change. A pod has one
// worker, because the service scales with pods. Calls to computes use the version of the
// oldest compute.
func defaults() config.Sections {
	var sections config.Sections
	sections.Set("conductor", "workers", "1")
	sections.Set("upgrade_levels", "compute", "auto")
	nova.EndWithin(&sections, 5)
	return sections
}

// withoutPlacement sets an address for Placement at which no process listens. At its start,
// the conductor exits if it has no account for Placement, but only logs a warning if
// Placement does not answer (nova: conductor/manager.py).
func withoutPlacement(sections *config.Sections) {
	sections.Set("placement", "auth_type", "none")
	sections.Set("placement", "endpoint_override", "http://127.0.0.1:9")
}
