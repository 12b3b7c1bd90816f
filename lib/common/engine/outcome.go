package engine

import (
	"fmt"
	"time"

	"asterism.dev/lib/common/engine/internal/apply"
)

// Reasons that the engine gives to conditions; Stop, Fail and WaitAs take other reasons.
const (
	ReasonProgressing = apply.ReasonProgressing
	ReasonWaiting     = apply.ReasonWaiting
	ReasonConflict    = apply.ReasonConflict
	ReasonInvalid     = apply.ReasonInvalid
	ReasonJobFailed   = apply.ReasonJobFailed
	ReasonError       = apply.ReasonError
	ReasonComplete    = "Complete"
	ReasonNotReached  = "NotReached"
	ReasonDeleting    = "Deleting"
	ReasonPaused      = "Paused"
	reasonGone        = "Gone"
	reasonPanic       = "Panic"
)

// Back-off after an error: of a pass it begins with retryMin, of a Do with twice as much.
const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// A Do that has failed after slowCall for the time silentFor is called every silentRetryMax,
// until its inputs change: it occupies a worker each time.
const (
	slowCall       = time.Second
	silentFor      = 10 * time.Minute
	silentRetryMax = 5 * time.Minute
)

// waitPauseMax bounds the pause of a Do that has ended with Wait or Stop.
const waitPauseMax = time.Second

// repeatJitter is the part of Every by which calls of Do are spread.
const repeatJitter = 0.1

// outcome is an error that describes the end of a stage. Plain errors are retried with
// back-off and have the reason Error.
type outcome = apply.Outcome

// outcomeOf turns any error into an outcome; nil for nil.
func outcomeOf(err error) *outcome { return apply.OutcomeOf(err) }

// Wait returns an error for a stage that cannot continue until a watched object changes.
func Wait(format string, args ...any) error { return WaitAs(ReasonWaiting, format, args...) }

// WaitAs is Wait with another reason.
func WaitAs(reason, format string, args ...any) error {
	return &outcome{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ProgressAs is Progressing with another reason: for a stage that continues by itself. Its event
// is no warning.
func ProgressAs(reason, format string, args ...any) error {
	return &outcome{Reason: reason, Message: fmt.Sprintf(format, args...), Expected: true}
}

// waitFor is Wait for a change that cannot be watched: the stage is tried again after d.
func waitFor(d time.Duration, format string, args ...any) error {
	return &outcome{Reason: ReasonWaiting, Message: fmt.Sprintf(format, args...), After: d}
}

// Stop returns an error for a stage that only a changed spec or input can correct.
func Stop(reason, format string, args ...any) error {
	return &outcome{Reason: reason, Message: fmt.Sprintf(format, args...), Stalled: true}
}

// Fail returns an error with a reason, which is retried with back-off.
func Fail(reason string, err error) error {
	return &outcome{Reason: reason, Message: err.Error(), Retry: true, Cause: err}
}

// Conflict returns an error for an object of the wanted name that is foreign. The engine
// does not change this object.
func Conflict(format string, args ...any) error { return WaitAs(ReasonConflict, format, args...) }

// Abandon returns an error for a stage of a teardown that can never succeed, because, for
// example, a Secret was deleted. An event LeftBehind has the message, which lists the
// objects that remain, and the teardown continues.
func Abandon(format string, args ...any) error {
	return &abandoned{remains: fmt.Sprintf(format, args...)}
}

type abandoned struct{ remains string }

func (a *abandoned) Error() string { return "left behind: " + a.remains }

// resolvesItself tells whether the outcome may end without an action of a user, or is what a user
// wants.
func resolvesItself(o *outcome) bool {
	switch o.Reason {
	case ReasonProgressing, ReasonWaiting, ReasonDeleting, ReasonPaused:
		return true
	}
	return o.Expected
}

// Reason returns the reason of a condition for the error; "" for nil.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return outcomeOf(err).Reason
}
