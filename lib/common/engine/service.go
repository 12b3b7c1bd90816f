package engine

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service is the description of one kind by its operator.
type Service[T Object] struct {
	// Name is the controller's name, the field owner of every child and their
	// label app.kubernetes.io/name, for example "widget".
	Name string
	// Stages are the stages of the kind, in order.
	Stages []Stage[T]
	// Teardown has the stages of the deletion, in order; each stage waits until the stage
	// before is ready. A kind with a Teardown has a finalizer, which is added before the
	// first stage and removed when the last stage of the teardown is ready. Without a
	// Teardown, only garbage collection deletes the children.
	Teardown []Stage[T]
	// Available determines the condition Available: whether users are served. It is nil for
	// kinds without this condition. Only its Needs, Do and Every are used. The condition is
	// set in every pass over an object that is not being deleted, even if a stage is not done
	// or the object is paused, and Ready does not depend on it. For a paused object, Do must
	// change nothing.
	Available *Stage[T]
	// Report copies inputs of a pass into the status. It is called before the status is
	// compared and written: at the end of every pass, also of one in which the teardown waits,
	// but not while a watch is slow, when nothing is judged, or the object is paused.
	Report func(T, Inputs)
	// Proof is a further check of a child, for kinds whose owner reference, annotation or
	// label can be forged; nil: none.
	Proof func(T, client.Object) bool
	// Owns lists every kind that the stages apply, or have applied in an earlier version of
	// the operator: children of other kinds are never deleted.
	Owns []client.Object
}

// Stage waits for its Needs, calls Do, and applies the children that Build returns. It is
// ready when all of these steps are complete now, and done when all of them have been
// complete for the current inputs and children, and no conflict or refusal stops it now.
//
// A child belongs to the stage that lists it. If a later version of the operator lists a
// child in an earlier stage, the child stays. If it lists the child in a later stage, the
// child is deleted and recreated: a child with data must not change its stage, or its old
// stage must list it as Kept.
type Stage[T Object] struct {
	// Condition is the name of the stage and the type of its condition. A stage of a
	// Teardown has no condition: the message of Ready begins with the stage's name.
	// Service.Available needs no Condition.
	Condition string
	// Needs are the inputs of Do and Build; the stage waits for them.
	Needs func(T) []Need
	// Do calls a server outside the cluster, such as MariaDB. It runs when the spec or an input
	// has changed since Do last succeeded; with Every, also after that time and after a
	// restart of the operator. Without Every, a restart runs it again if the record of its success is
	// not of the newest generation.
	//
	// It MUST be idempotent, because the operator may end before it records the success, and
	// then calls Do again. It MUST obey its context, which ends after DoTimeout: other objects
	// of the namespace wait meanwhile. It MUST find what it has created by a name or a mark that
	// does not change, and change nothing that lacks the mark, because others use the same
	// servers. What it observes MUST NOT contain a secret: the status shows it.
	//
	// It returns Fail for what is tried again with growing pauses, Stop for what only a changed
	// spec or input can correct, and Wait for what a watched object will report. Inputs hold
	// only what Needs has declared.
	Do func(context.Context, T, Inputs) (Observed, error)
	// Every is the time after which Do is repeated; nil or 0: only a change repeats Do.
	Every func(T) time.Duration
	// Build returns the children that should exist. It MUST be pure, because the engine compares
	// hashes of the children: a time, a random value or the order of a map would restart pods
	// in every pass. A child of the last pass that is not returned is deleted, unless an error
	// is returned: an error says that the children are not known.
	Build func(T, Inputs) ([]Child, error)
	// Judge is called when every child is complete, for example to read the result of a Job.
	// The stage ends with its error; without an error, the text is the message of the
	// condition. It is pure, like Build; nil: no judgement.
	Judge func(T, Inputs) (string, error)
	// Report copies inputs into the status. It is not called if the stage has ended before its
	// children were applied.
	Report func(T, Inputs)
	// Continue makes the walk continue although this stage is not done.
	Continue bool
	// Shown adds the condition to the metric asterism_condition, beside Ready and Available, for an
	// alert: one more series for each object of the kind.
	Shown bool
	// Apart is for work that no other stage and no user waits for: Ready does not depend on the
	// stage, and the walk continues although it is not done.
	Apart bool
}

// DoTimeout is the deadline of one Do.
const DoTimeout = 10 * time.Second

// passOf is a pass with the type of its object, which the functions of its stages need.
type passOf[T Object] struct {
	*pass
	service Service[T]
	cr      T // cr of the pass
}
