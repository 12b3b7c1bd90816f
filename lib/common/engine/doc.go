// Package engine reconciles objects. An operator describes one kind as a list of
// stages; the engine does what all operators have in common:
//
//	spec ──► Needs ──► Do ──► Build ──► apply ──► judge ──► status, event
//	         gate,     rare    pure     only       complete   once a pass
//	         input     calls            changes    or not?
//
// docs/contracts.md lists what the engine guarantees, and the test of each guarantee: for example,
// children are written by server-side apply, foreign objects are never adopted, nothing is sent
// without a change, and a stage that panics, fails or hangs changes conditions of its own object
// only, unless others of its kind and namespace wait for their turn at a server.
// docs/architecture.md follows one pass through the files.
package engine
