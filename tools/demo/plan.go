package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"asterism.dev/tools/internal/progress"
)

// step is one part of the demo. It starts once the steps that it needs are done, in
// parallel with others.
type step struct {
	name  string
	needs []string // names of earlier steps of the list
	run   func(ctx context.Context, line *progress.Line) error
}

// runSteps runs the steps. The first failure ends the other steps.
func runSteps(ctx context.Context, shown *progress.Progress, steps []step) error {
	done := map[string]chan struct{}{}
	for _, s := range steps {
		done[s.name] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range steps {
		group.Go(func() error {
			for _, need := range s.needs {
				select {
				case <-done[need]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			line := shown.Begin(i+1, s.name)
			err := s.run(line.Context(ctx), line)
			line.End(err, ctx.Err() != nil)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			close(done[s.name])
			return nil
		})
	}
	return group.Wait()
}
