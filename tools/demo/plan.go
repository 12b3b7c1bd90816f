package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// step is one part of the demo. It starts once the steps that it needs are done, in
// parallel with others.
type step struct {
	name  string
	needs []string // names of earlier steps of the list
	run   func(ctx context.Context, line *line) error
}

// stepError is the first step that failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return fmt.Sprintf("%s: %v", e.step, e.err) }
func (e *stepError) Unwrap() error { return e.err }

// run runs the steps. The first failure ends the other steps.
func (p *progress) run(ctx context.Context, steps []step) error {
	p.total = len(steps)
	stop := p.start()
	defer stop()
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
			line := p.begin(i+1, s.name)
			err := s.run(ctx, line)
			p.end(line, err, ctx.Err() != nil)
			if err != nil {
				return &stepError{step: s.name, err: err}
			}
			close(done[s.name])
			return nil
		})
	}
	return group.Wait()
}
