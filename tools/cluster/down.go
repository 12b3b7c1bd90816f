package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// down ends every process of the cluster and removes all that it made. It works
// from what it finds, so also after a killed run or a removed folder.
func (c *cluster) down(ctx context.Context) error {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	c.progress.say("removing the cluster in %s", c.dir)
	if err := c.cleanUp(ctx); err != nil {
		return err
	}
	if err := removeCluster(c.dir); err != nil {
		return err
	}
	c.progress.say("down")
	return nil
}

// removeCluster removes the state last: until then, another `down` knows the folder for a cluster's.
func removeCluster(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == stateFile || entry.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// cleanUp leaves nothing of the cluster but its folder.
func (c *cluster) cleanUp(ctx context.Context) error {
	machine, err := readMachine()
	if err != nil {
		return err
	}
	ours := machine != nil && machine.Dir == c.dir
	if ours && os.Geteuid() != 0 {
		return fmt.Errorf("the cluster in %s has a node, which only root can remove: run this with sudo", c.dir)
	}
	if err := killAll(ctx, c.dir, ours); err != nil || !ours {
		return err
	}
	return machine.undo(ctx)
}

// killAll ends the processes of the cluster in the folder by force, until none is found any more.
func killAll(ctx context.Context, dir string, pods bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return poll(ctx, pollInterval, func() error {
		running, err := processes(dir)
		if err != nil {
			return err
		}
		for _, p := range running {
			if err := p.signal(dir, syscall.SIGKILL); err != nil {
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
