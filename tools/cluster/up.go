package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"asterism.dev/tools/internal/checkout"
	"asterism.dev/tools/internal/process"
)

const (
	// startTimeout is the time in which a started component must become healthy. A machine that is
	// busy with other work needs more than a minute for kube-apiserver.
	startTimeout = 5 * time.Minute
	// healTimeout is the time in which a running component must become healthy before it
	// is restarted: an earlier run may have been killed while starting it.
	healTimeout  = time.Minute
	pollInterval = 50 * time.Millisecond
)

// up starts the components that do not run, and restarts those that are outdated or
// unhealthy.
func (c *cluster) up(ctx context.Context, controlPlaneOnly bool) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	if err := protect(c.dir); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	defer c.removeUnused()
	if err := c.loadState(ctx, controlPlaneOnly); err != nil {
		return err
	}
	if c.state.Mode == full {
		if err := c.checkMachine(ctx); err != nil {
			return err
		}
	}
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	if c.folders, err = buildBinaries(ctx, c.progress, root, c.state.Mode); err != nil {
		return err
	}
	changed, err := c.startAll(ctx)
	if err != nil {
		return err
	}
	if err := c.writeEnv(); err != nil {
		return err
	}
	if changed {
		c.progress.Say("up: %s", c.apiURL())
	} else {
		c.progress.Say("already up: %s", c.apiURL())
	}
	c.progress.Say(". %s", c.envFile())
	return nil
}

// removeUnused removes a folder without a cluster's state, as after a refusal.
func (c *cluster) removeUnused() {
	if !exists(filepath.Join(c.dir, stateFile)) {
		_ = os.Remove(filepath.Join(c.dir, lockFile))
		_ = os.Remove(c.dir) // only if it is empty
	}
}

// loadState reads the state or creates it. A full cluster stays full, also with
// controlPlaneOnly.
func (c *cluster) loadState(ctx context.Context, controlPlaneOnly bool) error {
	var err error
	c.state, err = readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		c.state = &state{Mode: controlPlane}
		err = c.cleanUp(ctx) // of a cluster whose folder was removed manually
	}
	if err != nil {
		return err
	}
	if !controlPlaneOnly {
		c.state.Mode = full
	}
	return nil
}

// startAll returns true if it started a component.
func (c *cluster) startAll(ctx context.Context) (changed bool, err error) {
	if err := c.settlePorts(ctx); err != nil {
		return false, err
	}
	if c.state.Mode == full {
		if err := c.prepareMachine(ctx); err != nil {
			return false, err
		}
	}
	if err := c.writeFiles(); err != nil {
		return false, err
	}
	running, err := process.Of(c.dir)
	if err != nil {
		return false, err
	}
	for _, next := range c.components() {
		started, err := c.ensure(ctx, running, next)
		if err != nil {
			return changed, err
		}
		changed = changed || started
	}
	return changed, c.settle(ctx)
}

// writeFiles writes the files that the components read.
func (c *cluster) writeFiles() error {
	if err := c.writeCredentials(); err != nil {
		return err
	}
	policy := auditPolicy
	if c.state.Mode == full {
		policy = slices.Concat(auditPolicy, auditBodies)
	}
	if err := writeFile(c.pki("audit-policy.yaml"), append(policy, "- level: Metadata\n"...), 0o644); err != nil {
		return err
	}
	// Git ignores the folder, wherever it is in a work tree.
	if err := writeFile(filepath.Join(c.dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	if c.state.Mode == full {
		return c.writeNodeFiles()
	}
	return nil
}

// settlePorts chooses ports at the first start. If another program listens on the port of
// a component that is down, settlePorts stops the other components and chooses all again.
func (c *cluster) settlePorts(ctx context.Context) error {
	running, err := process.Of(c.dir)
	if err != nil {
		return err
	}
	name := ""
	if c.state.Ports != nil {
		name = takenPort(c.state.Ports, running, portFreed)
	}
	if name != "" {
		c.progress.Say("another program listens on port %d of %s: choosing new ports", c.state.Ports[name], name)
		for _, p := range running {
			if err := p.Stop(ctx); err != nil {
				return err
			}
		}
		c.state.Ports = nil
	}
	if c.state.Ports == nil {
		if c.state.Ports, err = choosePorts(portNames, portFree); err != nil {
			return err
		}
	}
	return c.state.write(c.dir)
}

// takenPort returns the name of a port in use whose component is down, or "".
func takenPort(ports map[string]int, running []process.Process, free func(port int) bool) string {
	for _, name := range portNames {
		owner := strings.TrimSuffix(strings.TrimSuffix(name, "-peer"), "-metrics")
		if process.Find(running, owner) == nil && !free(ports[name]) {
			return name
		}
	}
	return ""
}

// ensure makes the component run healthily with the wanted arguments.
func (c *cluster) ensure(ctx context.Context, running []process.Process, wanted component) (started bool, err error) {
	if p := process.Find(running, wanted.name); p != nil {
		reason := outdated(p, wanted)
		if reason == "" {
			err := c.healthy(ctx, wanted, healTimeout, nil)
			if err == nil {
				return false, nil
			}
			reason = err.Error()
		}
		c.progress.Say("restarting %s (pid %d): %s", wanted.name, p.PID, reason)
		if err := p.Stop(ctx); err != nil {
			return false, err
		}
	}
	if wanted.before != nil {
		if err := wanted.before(ctx); err != nil {
			return false, err
		}
	}
	c.progress.Say("starting %s", wanted.name)
	ended, err := process.Start(c.dir, wanted.name, wanted.args)
	if err != nil {
		return false, err
	}
	if err := c.healthy(ctx, wanted, startTimeout, ended); err != nil {
		return true, fmt.Errorf("%s does not become healthy: %w\n%s", wanted.name, err, c.logTail(wanted.name))
	}
	return true, nil
}

// outdated says how a process differs from one started now; "" if it does not.
func outdated(p *process.Process, wanted component) string {
	if !slices.Equal(p.Args, wanted.args) {
		return "its arguments changed"
	}
	for _, file := range wanted.files {
		// The start time of a process is exact to some hundredths of a second.
		if info, err := os.Stat(file); err == nil && info.ModTime().After(p.Started.Add(time.Second)) {
			return file + " changed"
		}
	}
	return ""
}

// healthy waits until the component is healthy, has ended, or the limit has passed.
func (c *cluster) healthy(ctx context.Context, wanted component, limit time.Duration, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not healthy after %s", limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case err := <-ended:
			fail(fmt.Errorf("the process ended: %s", exitReason(err)))
		case <-ctx.Done():
		}
	}()
	if err := process.Poll(ctx, pollInterval, func() error { return wanted.healthy(ctx) }); err != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return nil
}

func exitReason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func (c *cluster) logTail(component string) string {
	content, err := os.ReadFile(process.LogFile(c.dir, component))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("last lines of %s:\n%s", process.LogFile(c.dir, component), process.LastLines(string(content), 12))
}

// settle waits for the default service account and, in the full mode, for the node.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	check := c.get(c.apiURL() + "/api/v1/namespaces/default/serviceaccounts/default")
	if err := process.Poll(ctx, pollInterval, func() error { return check(ctx) }); err != nil {
		return fmt.Errorf("the default service account was not created: %w\n%s", err, c.logTail(controllerManagerName))
	}
	if c.state.Mode == full {
		return c.settleNode(ctx)
	}
	return nil
}
