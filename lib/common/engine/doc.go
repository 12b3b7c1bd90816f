// Package engine reconciles objects. An operator describes one kind as a list of
// stages; the engine does what all operators have in common:
//
//	spec ──► Needs ──► Do ──► Build ──► apply ──► judge ──► status, event
//	         gate,     rare    pure     only       complete   once a pass
//	         input     calls            changes    or not?
//
// The engine guarantees the following rules, each with a test named after it. Children
// are written by server-side apply, and foreign objects are never adopted. Without a
// change, nothing is sent. Secrets are watched as metadata and read by name. A stage that
// panics, fails or hangs changes conditions of its own object only. A Service.Report that
// panics is an error in the log.
package engine
