package engine

import (
	"context"
	"time"
)

// boundStage is a Stage bound to one object.
type boundStage struct {
	condition string
	continues bool
	every     func() time.Duration
	needs     func() []Need
	do        func(context.Context, Inputs) (Observed, error)
	build     func(Inputs) ([]Child, error)
	judge     func(Inputs) (string, error)
	report    func(Inputs)
}

// bind binds the stages of a kind to one object, so that a pass needs no type parameter.
func bind[T Object](stages []Stage[T], cr T) []boundStage {
	all := make([]boundStage, 0, len(stages))
	for _, s := range stages {
		bound := boundStage{condition: s.Condition, continues: s.Continue}
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
		if s.Judge != nil {
			bound.judge = func(in Inputs) (string, error) { return s.Judge(cr, in) }
		}
		if s.Report != nil {
			bound.report = func(in Inputs) { s.Report(cr, in) }
		}
		all = append(all, bound)
	}
	return all
}
