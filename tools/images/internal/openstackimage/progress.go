package openstackimage

import (
	"fmt"
	"io"
	"time"
)

// progress prints the running step and its duration.
type progress struct {
	out   io.Writer
	steps int
	done  int
}

func newProgress(out io.Writer, steps int) *progress {
	return &progress{out: out, steps: steps}
}

// step runs one step, and prints every ten seconds that it still runs.
func (p *progress) step(name string, run func() error) error {
	p.done++
	start := time.Now()
	report := func(state string) {
		_, _ = fmt.Fprintf(p.out, "[%d/%d] %s%s (%s)\n", p.done, p.steps, name, state, time.Since(start).Round(time.Second))
	}
	_, _ = fmt.Fprintf(p.out, "[%d/%d] %s\n", p.done, p.steps, name)
	ticker, finished := time.NewTicker(10*time.Second), make(chan error, 1)
	defer ticker.Stop()
	go func() { finished <- run() }()
	for {
		select {
		case <-ticker.C:
			report(" ...")
		case err := <-finished:
			if err != nil {
				report(" failed")
				return fmt.Errorf("%s: %w", name, err)
			}
			report(": done")
			return nil
		}
	}
}
