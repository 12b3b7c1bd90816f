package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"asterism.dev/tools/internal/process"
)

// down ends every process of the cluster and removes its files and network. It reads them
// from the machine, so it also works after a killed run or a removed folder.
func (c *cluster) down(ctx context.Context) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	c.progress.Say("removing the cluster in %s", c.dir)
	if err := c.cleanUp(ctx); err != nil {
		return err
	}
	if err := removeFolder(c.dir, stateFile, lockFile); err != nil {
		return err
	}
	c.progress.Say("down")
	return nil
}

// removeFolder removes the named files last: a repeated `down` recognizes by them what is left.
func removeFolder(dir string, last ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if slices.Contains(last, entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// cleanUp removes everything of the cluster except its folder.
func (c *cluster) cleanUp(ctx context.Context) error {
	machine, err := readMachine()
	if err != nil {
		return err
	}
	ownsNode := machine != nil && machine.Dir == c.dir
	if ownsNode && os.Geteuid() != 0 {
		return fmt.Errorf("the cluster in %s has a node, which only root can remove: run this with sudo", c.dir)
	}
	if err := killAll(ctx, c.dir, ownsNode); err != nil || !ownsNode {
		return err
	}
	return machine.undo(ctx)
}

// killAll kills the processes of the cluster in the folder until none is left.
func killAll(ctx context.Context, dir string, pods bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return process.Poll(ctx, pollInterval, func() error {
		running, err := process.Of(dir)
		if err != nil {
			return err
		}
		for _, p := range running {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
		count := len(running)
		if pods {
			killed, err := killPods()
			if err != nil {
				return err
			}
			count += killed
		}
		if count > 0 {
			return fmt.Errorf("%d processes of the cluster still run", count)
		}
		return nil
	})
}
