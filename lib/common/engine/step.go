package engine

import (
	"context"
	"time"
)

// step is a Stage bound to one object.
type step struct {
	condition string
	carryOn   bool
	every     func() time.Duration
	needs     func() []Need
	do        func(context.Context, Inputs) (Observed, error)
	build     func(Inputs) ([]Child, error)
	report    func(Inputs)
}

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
