package conductor

import "asterism.dev/lib/common/config"

// graceSeconds is more than the 60 that the service itself takes to finish
// what it is doing (oslo.service: graceful_shutdown_timeout).
const graceSeconds = 90

// options that this operator sets and a user may change. One worker per pod,
// because pods are what scales; calls to computes speak what the oldest of them
// understands.
func defaults() config.Sections {
	var sections config.Sections
	sections.Set("conductor", "workers", "1")
	sections.Set("upgrade_levels", "compute", "auto")
	return sections
}

// withoutIdentity: the conductor looks for Placement when it starts, and ends
// if it has no account at all, but only warns if it finds nobody
// (nova: conductor/manager.py). Nothing listens on that port.
func withoutIdentity(sections *config.Sections) {
	sections.Set("placement", "auth_type", "none")
	sections.Set("placement", "endpoint_override", "http://127.0.0.1:9")
}
