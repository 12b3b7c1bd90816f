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
)

const (
	// startTimeout bounds how long a started component may take to be healthy.
	startTimeout = 90 * time.Second
	// healTimeout bounds how long a running one may, before it is restarted:
	// an earlier run may have been killed while it was starting.
	healTimeout  = 15 * time.Second
	pollInterval = 50 * time.Millisecond
)

// up starts what does not run, and restarts what runs otherwise than it should.
func (c *cluster) up(ctx context.Context, controlPlaneOnly bool) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	defer c.leaveNothing()
	if err := c.loadState(ctx, controlPlaneOnly); err != nil {
		return err
	}
	if c.state.Mode == full {
		if err := c.checkMachine(ctx); err != nil {
			return err
		}
	}
	root, err := repositoryRoot()
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
		c.progress.say("up: %s", c.apiURL())
	} else {
		c.progress.say("already up: %s", c.apiURL())
	}
	_, _ = fmt.Fprintf(c.progress.out, "         . %s\n", c.envFile())
	return nil
}

// leaveNothing removes a folder in which nothing was begun, as after a refusal.
func (c *cluster) leaveNothing() {
	if !exists(filepath.Join(c.dir, stateFile)) {
		_ = os.Remove(filepath.Join(c.dir, lockFile))
		_ = os.Remove(c.dir) // only if it is empty
	}
}

// loadState reads the state or begins one. A full cluster stays full: it can do
// all that a control plane alone can.
func (c *cluster) loadState(ctx context.Context, controlPlaneOnly bool) error {
	var err error
	c.state, err = readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		c.state = &state{Mode: controlPlane}
		err = c.cleanUp(ctx) // of a cluster whose folder was removed by hand
	}
	if err != nil {
		return err
	}
	if !controlPlaneOnly {
		c.state.Mode = full
	}
	return nil
}

// startAll gives true if anything had to be started.
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
	running, err := processes(c.dir)
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

// writeFiles writes everything that the components read.
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
	// The folder ignores itself, wherever in a work tree it is.
	if err := writeFile(filepath.Join(c.dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return err
	}
	if c.state.Mode == full {
		return c.writeNodeFiles()
	}
	return nil
}

// settlePorts chooses ports at the first start. If somebody else took one while
// its component was down, all are chosen anew, which takes stopping the rest.
func (c *cluster) settlePorts(ctx context.Context) error {
	running, err := processes(c.dir)
	if err != nil {
		return err
	}
	name := ""
	if c.state.Ports != nil {
		name = takenPort(c.state.Ports, running, portFreed)
	}
	if name != "" {
		c.progress.say("port %d of %s was taken by another program: choosing new ports", c.state.Ports[name], name)
		for _, p := range running {
			if err := p.stop(ctx, c.dir); err != nil {
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

// takenPort names a port whose component is down while somebody listens on it.
func takenPort(ports map[string]int, running []process, free func(port int) bool) string {
	for _, name := range portNames {
		owner := strings.TrimSuffix(strings.TrimSuffix(name, "-peer"), "-metrics")
		if find(running, owner) == nil && !free(ports[name]) {
			return name
		}
	}
	return ""
}

// ensure has the component running with the wanted arguments and healthy.
func (c *cluster) ensure(ctx context.Context, running []process, wanted component) (started bool, err error) {
	if p := find(running, wanted.name); p != nil {
		reason := outdated(p, wanted)
		if reason == "" {
			err := c.healthy(ctx, wanted, healTimeout, nil)
			if err == nil {
				return false, nil
			}
			reason = err.Error()
		}
		c.progress.say("restarting %s (pid %d): %s", wanted.name, p.pid, reason)
		if err := p.stop(ctx, c.dir); err != nil {
			return false, err
		}
	}
	if wanted.before != nil {
		if err := wanted.before(ctx); err != nil {
			return false, err
		}
	}
	c.progress.say("starting %s", wanted.name)
	ended, err := start(c.dir, wanted.name, wanted.args)
	if err != nil {
		return false, err
	}
	if err := c.healthy(ctx, wanted, startTimeout, ended); err != nil {
		return true, fmt.Errorf("%s does not come up: %w\n%s", wanted.name, err, c.logTail(wanted.name))
	}
	return true, nil
}

// outdated says why a process is not what it would be if started now; "" if it is.
func outdated(p *process, wanted component) string {
	if !slices.Equal(p.args, wanted.args) {
		return "its arguments changed"
	}
	for _, file := range wanted.files {
		// A process's start is known to some hundredths of a second.
		if info, err := os.Stat(file); err == nil && info.ModTime().After(p.started.Add(time.Second)) {
			return file + " changed"
		}
	}
	return ""
}

// healthy waits until the component is, or has ended, or the time is over.
func (c *cluster) healthy(ctx context.Context, wanted component, limit time.Duration, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not healthy after %s", limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case err := <-ended:
			fail(fmt.Errorf("it ended: %s", exitReason(err)))
		case <-ctx.Done():
		}
	}()
	if err := poll(ctx, pollInterval, func() error { return wanted.healthy(ctx) }); err != nil {
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
	content, err := os.ReadFile(logFile(c.dir, component))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("last lines of %s:\n%s", logFile(c.dir, component), lastLines(string(content), 12))
}

// lastLines cuts long lines too: one of a kube-apiserver may fill a screen.
func lastLines(text string, count int) string {
	const width = 300
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-count):]
	for i, line := range lines {
		if len(line) > width {
			lines[i] = line[:width] + "…"
		}
	}
	return strings.Join(lines, "\n")
}

// settle waits for what the first objects of a user need.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	check := c.get(c.apiURL() + "/api/v1/namespaces/default/serviceaccounts/default")
	if err := poll(ctx, pollInterval, func() error { return check(ctx) }); err != nil {
		return fmt.Errorf("no default service account appears: %w\n%s", err, c.logTail(controllerManagerName))
	}
	if c.state.Mode == full {
		return c.settleNode(ctx)
	}
	return nil
}
