package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"asterism.dev/tools/internal/process"
)

// status prints each component, and fails unless all are healthy.
func (c *cluster) status(ctx context.Context, out io.Writer) error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	var err error
	c.state, err = readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no cluster in %s: start one with up", c.dir)
	}
	if err != nil {
		return err
	}
	running, err := process.Of(c.dir)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s (%s) %s\n", c.dir, c.state.Mode, c.apiURL())
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "COMPONENT\tPID\tSINCE\tHEALTH")
	unhealthy := 0
	for _, wanted := range c.components() {
		pid, since, health := "-", "-", "not running: see "+process.LogFile(c.dir, wanted.name)
		if p := process.Find(running, wanted.name); p != nil {
			pid, since, health = fmt.Sprint(p.PID), p.Started.Format(time.DateTime), "healthy"
			if err := wanted.healthy(ctx); err != nil {
				health = err.Error()
			}
		}
		if health != "healthy" {
			unhealthy++
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", wanted.name, pid, since, health)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if unhealthy > 0 {
		return fmt.Errorf("%d components are not healthy: up restarts them", unhealthy)
	}
	return nil
}
