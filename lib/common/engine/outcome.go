package engine

import (
	"errors"
	"fmt"
	"time"
)

// Reasons that the engine gives to conditions; a Stop brings its own.
const (
	ReasonComplete    = "Complete"
	ReasonProgressing = "Progressing"
	ReasonWaiting     = "Waiting"
	ReasonConflict    = "Conflict"
	ReasonInvalid     = "Invalid"
	ReasonError       = "Error"
	ReasonPanic       = "Panic"
	ReasonJobFailed   = "JobFailed"
	ReasonNotReached  = "NotReached"
	ReasonDeleting    = "Deleting"
)

// outcome is an error that says how a stage ended. Plain errors are retried
// with back-off and reported as ReasonError.
type outcome struct {
	reason  string
	message string
	after   time.Duration // look again after this long; 0: a watch wakes us
	stalled bool          // nothing but a new generation helps
	retry   bool          // with the back-off of a failure
	cause   error
}

func (o *outcome) Error() string { return o.message }
func (o *outcome) Unwrap() error { return o.cause }

// Wait says that a stage cannot go on until something that is watched changes.
func Wait(format string, args ...any) error {
	return &outcome{reason: ReasonWaiting, message: fmt.Sprintf(format, args...)}
}

// WaitAs is Wait with a reason of its own.
func WaitAs(reason, format string, args ...any) error {
	return &outcome{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitFor is Wait for what cannot be watched: the stage is tried again after d.
func WaitFor(d time.Duration, format string, args ...any) error {
	return &outcome{reason: ReasonWaiting, message: fmt.Sprintf(format, args...), after: d}
}

// Stop says that nothing but a changed spec or input can help.
func Stop(reason, format string, args ...any) error {
	return &outcome{reason: reason, message: fmt.Sprintf(format, args...), stalled: true}
}

// Fail is an error with a reason of its own, retried with back-off.
func Fail(reason string, err error) error {
	return &outcome{reason: reason, message: err.Error(), retry: true, cause: err}
}

// Conflict says that something of the wanted name belongs to somebody else and
// was left untouched.
func Conflict(format string, args ...any) error {
	return &outcome{reason: ReasonConflict, message: fmt.Sprintf(format, args...)}
}

func progressing(format string, args ...any) *outcome {
	return &outcome{reason: ReasonProgressing, message: fmt.Sprintf(format, args...)}
}

// mayPass says whether time alone may help, as opposed to somebody who does something.
func (o *outcome) mayPass() bool {
	switch o.reason {
	case ReasonProgressing, ReasonWaiting, ReasonDeleting:
		return true
	}
	return false
}

// outcomeOf turns any error into an outcome.
func outcomeOf(err error) *outcome {
	var o *outcome
	if errors.As(err, &o) {
		return o
	}
	return &outcome{reason: ReasonError, message: err.Error(), retry: true, cause: err}
}

// Reason is the reason that a condition would give for the error; "" for none.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return outcomeOf(err).reason
}
