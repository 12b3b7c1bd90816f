package main

import (
	"fmt"
	"io"
	"time"
)

// reminder is the time after which progress prints again that a step still runs.
const reminder = 20 * time.Second

// progress prints the steps of a command with the time since its start.
type progress struct {
	out     io.Writer
	started time.Time
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, started: time.Now()}
}

func (p *progress) say(format string, args ...any) {
	elapsed := time.Since(p.started).Truncate(time.Second)
	_, _ = fmt.Fprintf(p.out, "[%6s] %s\n", elapsed, fmt.Sprintf(format, args...))
}

// during prints the title of a step, runs the step, and prints every 20 s that it still runs.
func (p *progress) during(title string, step func() error) error {
	p.say("%s", title)
	done := make(chan error, 1)
	go func() { done <- step() }()
	tick := time.NewTicker(reminder)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			p.say("still %s", title)
		}
	}
}
