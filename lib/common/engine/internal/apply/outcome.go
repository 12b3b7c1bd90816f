package apply

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Reasons of a child that is not complete.
const (
	ReasonProgressing = "Progressing"
	ReasonWaiting     = "Waiting"
	ReasonConflict    = "Conflict" // a foreign object has the name; not the API server's 409
	ReasonInvalid     = "Invalid"
	ReasonError       = "Error"
	ReasonJobFailed   = "JobFailed"
)

// Outcome is an error that describes the state of a stage, or of one of its children.
type Outcome struct { //nolint:errname // reads apply.Outcome
	Reason  string
	Message string
	After   time.Duration // until the next pass; 0: a watch or Retry starts it
	Stalled bool          // a user must act; After, if set, is for causes that no event reports
	Retry   bool          // the next pass starts with the back-off of a failure
	Cause   error

	Expected bool // no fault, whatever the reason

	ofChild bool // a child of an Asterism kind reports this reason about itself
}

// IsConflict tells whether an object of the wanted name is foreign. A child that reports a
// conflict of its own children is not ready, but is not foreign.
func (o *Outcome) IsConflict() bool { return o.Reason == ReasonConflict && !o.ofChild }

func (o *Outcome) Error() string { return o.Message }
func (o *Outcome) Unwrap() error { return o.Cause }

// OutcomeOf turns any error into an Outcome, whose message is the text of the error; nil for nil.
// A plain error is retried.
func OutcomeOf(err error) *Outcome {
	var outcome *Outcome
	var unserved *observe.NotServed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &outcome):
		if text := err.Error(); text != outcome.Message {
			wrapped := *outcome
			wrapped.Message = text
			return &wrapped
		}
		return outcome
	case errors.As(err, &unserved):
		return notServed(unserved)
	}
	return &Outcome{Reason: ReasonError, Message: err.Error(), Retry: true, Cause: err}
}

// notServed names the operator that installs an Asterism kind, and its package, which OLM and
// Helm install. By convention, the name of the operator is the kind in kebab case:
// book-shelf installs BookShelf, and its package is book-shelf-operator.
func notServed(unserved *observe.NotServed) *Outcome {
	message := unserved.Error()
	if strings.HasSuffix(unserved.Kind.Group, "asterism.dev") {
		operator := kebab(unserved.Kind.Kind)
		message += ": install the operator " + operator + " (package " + operator + "-operator)"
	}
	return &Outcome{Reason: ReasonWaiting, Message: message, After: unserved.Again, Cause: unserved}
}

var newWord = regexp.MustCompile("([a-z])([A-Z])")

func kebab(kind string) string {
	return strings.ToLower(newWord.ReplaceAllString(kind, "$1-$2"))
}

func progressing(format string, args ...any) *Outcome {
	return &Outcome{Reason: ReasonProgressing, Message: fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) *Outcome {
	return &Outcome{Reason: ReasonWaiting, Message: fmt.Sprintf(format, args...)}
}
