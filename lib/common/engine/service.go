package engine

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Object is a kind that the engine reconciles: its status embeds commonv1.Status.
type Object interface {
	client.Object
	// Common returns the part of the status that the engine writes.
	Common() *commonv1.Status
}

// Service is all that an operator says about one kind.
type Service[T Object] struct {
	// Name is the controller's name, the field owner of every child and their
	// label app.kubernetes.io/name, for example "nova-scheduler".
	Name string
	// Stages is the table of contents, in order.
	Stages []Stage[T]
	// Teardown is what deletion has to do, in order. It brings a finalizer, which
	// is added before the first stage and removed after the last one is done.
	// Without it, garbage collection does the work.
	Teardown []Stage[T]
	// Available says whether users are served; nil for kinds without the
	// condition. Only Needs, Do and Every count. It is judged in every pass, after
	// the walk and however the walk ended, and Ready does not depend on it.
	Available *Stage[T]
	// Report copies what a pass has seen into the status. It comes last in every
	// pass, however that went, also in one that deletes.
	Report func(T, Inputs)
	// Proof is what a child must meet besides its owner reference or what stands
	// for it, where that can be forged; nil for nothing more.
	Proof func(T, client.Object) bool
	// Owns lists every kind that the stages apply.
	Owns []client.Object
}

// Stage waits for what it Needs, does, applies what it Builds, and is done when
// all of that was complete once for the current inputs.
type Stage[T Object] struct {
	// Condition is the type of the condition that reports the stage.
	Condition string
	// Needs are waited for; they are the inputs of Do and Build.
	Needs func(T) []Need
	// Do is an idempotent call outside the cluster. It runs when what the stage
	// needs or the spec has changed since it last succeeded, and again after
	// Every. It must return within DoTimeout.
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

// Observed is what a stage learned outside the cluster; never a secret, it is
// stored in the status.
type Observed map[string]string

// DoTimeout is the deadline of one Do.
const DoTimeout = 10 * time.Second

// bind makes of the stages of a kind those of one object, so that only Service
// and Stage have a type parameter.
func bind[T Object](stages []Stage[T], cr T) []step {
	steps := make([]step, 0, len(stages))
	for _, s := range stages {
		bound := step{condition: s.Condition, carryOn: s.Continue}
		if s.Needs != nil {
			bound.needs = func() []Need { return s.Needs(cr) }
		}
		if s.Do != nil {
			bound.do = func(ctx context.Context, in Inputs) (Observed, error) { return s.Do(ctx, cr, in) }
		}
		if s.Every != nil {
			bound.every = func() time.Duration { return s.Every(cr) }
		}
		if s.Build != nil {
			bound.build = func(in Inputs) ([]Child, error) { return s.Build(cr, in) }
		}
		if s.Report != nil {
			bound.report = func(in Inputs) { s.Report(cr, in) }
		}
		steps = append(steps, bound)
	}
	return steps
}
