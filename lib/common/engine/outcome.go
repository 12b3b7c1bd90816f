package engine

import (
	"fmt"
	"time"

	"asterism.dev/lib/common/engine/internal/apply"
)

// Reasons that the engine gives to conditions; a Stop brings its own.
const (
	ReasonProgressing = apply.ReasonProgressing
	ReasonWaiting     = apply.ReasonWaiting
	ReasonConflict    = apply.ReasonConflict
	ReasonInvalid     = apply.ReasonInvalid
	ReasonJobFailed   = apply.ReasonJobFailed
	ReasonComplete    = "Complete"
	ReasonNotReached  = "NotReached"
	ReasonDeleting    = "Deleting"
	reasonGone        = "Gone"
	reasonPanic       = "Panic"
)

// Back-off after an error, of a pass and of a Do.
const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// outcome is an error that says how a stage ended. Plain errors are retried
// with back-off and reported as Error.
type outcome = apply.Outcome

// outcomeOf turns any error into an outcome.
func outcomeOf(err error) *outcome { return apply.OutcomeOf(err) }

// Wait says that a stage cannot go on until something that is watched changes.
func Wait(format string, args ...any) error { return WaitAs(ReasonWaiting, format, args...) }

// WaitAs is Wait with a reason of its own.
func WaitAs(reason, format string, args ...any) error {
	return &outcome{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// waitFor is Wait for what cannot be watched: the stage is tried again after d.
func waitFor(d time.Duration, format string, args ...any) error {
	return &outcome{Reason: ReasonWaiting, Message: fmt.Sprintf(format, args...), After: d}
}

// Stop says that nothing but a changed spec or input can help.
func Stop(reason, format string, args ...any) error {
	return &outcome{Reason: reason, Message: fmt.Sprintf(format, args...), Stalled: true}
}

// Fail is an error with a reason of its own, retried with back-off.
func Fail(reason string, err error) error {
	return &outcome{Reason: reason, Message: err.Error(), Retry: true, Cause: err}
}

// Conflict says that something of the wanted name belongs to somebody else and
// was left untouched.
func Conflict(format string, args ...any) error { return WaitAs(ReasonConflict, format, args...) }

// Abandon says that a stage of a teardown cannot be undone, ever: the means are
// gone. What is left behind is listed in an event, and the teardown goes on.
func Abandon(format string, args ...any) error {
	return &abandoned{left: fmt.Sprintf(format, args...)}
}

type abandoned struct{ left string }

func (a *abandoned) Error() string { return "left behind: " + a.left }

// healsByItself says whether time alone may help, as opposed to a person.
func healsByItself(o *outcome) bool {
	switch o.Reason {
	case ReasonProgressing, ReasonWaiting, ReasonDeleting:
		return true
	}
	return false
}

// Reason is the reason that a condition would give for the error; "" for nil.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return outcomeOf(err).Reason
}
