// Package engine reconciles. An operator says what one kind is made of, as a
// list of stages; the engine does everything that all operators have in common:
//
//	spec ──► Needs ──► Do ──► Build ──► apply ──► judge ──► status, event
//	         gate,     rare    pure     only what  complete   once a pass
//	         input     calls            changed    or not?
//
// Rules that every controller gets from here, each with a test named after it:
// children are written by server-side apply and never adopted; nothing is sent
// at rest; Secrets are watched as metadata and read by name; a stage that
// panics, fails or hangs is a condition of its own object and nobody else's, and a
// Service.Report that panics is an error in the log.
package engine
