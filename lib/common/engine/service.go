package engine

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service is all that an operator says about one kind.
type Service[T Object] struct {
	// Name is the controller's name, the field owner of every child and their
	// label app.kubernetes.io/name, for example "nova-scheduler".
	Name string
	// Stages is the table of contents, in order.
	Stages []Stage[T]
	// Teardown is what deletion has to do, in order; each stage waits until the one
	// before is ready. It brings a finalizer, which is added before the first stage and
	// removed when the last stage of the teardown is ready. Without it, garbage collection
	// does the work.
	Teardown []Stage[T]
	// Available says whether users are served; nil for kinds without that condition.
	// Only its Needs, Do and Every count. The condition is judged in every pass, wherever
	// the walk has ended, and Ready does not depend on it.
	Available *Stage[T]
	// Report copies what a pass has seen into the status. Report is called at the end
	// of every pass, also while the object is being deleted, before the status is compared
	// and written.
	Report func(T, Inputs)
	// Proof is what a child must meet besides its owner reference or what stands
	// for it, where that can be forged; nil for nothing more.
	Proof func(T, client.Object) bool
	// Owns lists every kind that the stages apply.
	Owns []client.Object
}

// Stage waits for its Needs, calls Do, and applies the children that Build returns. It is
// ready when all of that is complete now, and done when all of that was complete once
// for the current inputs.
//
// A child belongs to the stage that lists it. A child that moves to an earlier stage
// stays. A child that moves to a later stage is deleted when its old stage is applied,
// and made anew: a child with data must stay where it is, or be Kept by its old stage.
type Stage[T Object] struct {
	// Condition is the type of the condition that reports the stage, and the stage's name.
	// A stage of a Teardown has no condition: Ready begins with its name. Available needs
	// none.
	Condition string
	// Needs are waited for; they are the inputs of Do and Build.
	Needs func(T) []Need
	// Do is an idempotent call outside the cluster. It runs when the spec, or something
	// that the stage needs, has changed since Do last succeeded; with Every, also after
	// that time and after a restart of the operator. It must return within DoTimeout.
	Do func(context.Context, T, Inputs) (Observed, error)
	// Every is after how long Do is repeated; nil or 0: never without a reason.
	Every func(T) time.Duration
	// Build returns the children that should exist. It is pure: the same
	// arguments give the same children.
	Build func(T, Inputs) ([]Child, error)
	// Report copies what was observed into the status.
	Report func(T, Inputs)
	// Continue lets the walk go on although this stage is not done.
	Continue bool
}

// DoTimeout is the deadline of one Do.
const DoTimeout = 10 * time.Second
