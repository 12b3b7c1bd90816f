package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"asterism.dev/tools/internal/cache"
	"asterism.dev/tools/internal/checkout"
	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// cluster is one Kubernetes with its state in a folder.
type cluster struct {
	dir      string
	state    *state
	folders  []string // of the binaries
	progress *progress.Progress
	client   *http.Client
}

// openCluster resolves the folder's path; it does not read the state.
func openCluster(dir string) (*cluster, error) {
	if dir == "" {
		root, err := checkout.Root()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, ".cluster")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// Processes are recognized by the folder's path, so symlinks are resolved.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	return &cluster{dir: dir, progress: progress.New(os.Stdout, 0)}, nil
}

// binary is the path of a built binary.
func (c *cluster) binary(name string) string {
	for _, folder := range c.folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

func (c *cluster) lock() (unlock func(), err error) {
	return cache.Lock(filepath.Join(c.dir, lockFile), func() {
		c.progress.Say("waiting for another command that works on %s", c.dir)
	})
}

// components lists the mode's components in the order in which they start.
func (c *cluster) components() []component {
	list := []component{c.etcd(), c.kubeAPIServer(), c.kubeControllerManager()}
	if c.state.Mode == full {
		list = append(list, c.containerd(), c.kubeScheduler(), c.kubelet(), c.kubeProxy(), c.coreDNS())
	}
	return list
}

// checkDirectory refuses a folder that is not a cluster's. A running process of the
// cluster proves that it is, even if its state was removed manually.
func (c *cluster) checkDirectory() error {
	if err := c.checkOwner(); err != nil {
		return err
	}
	running, err := process.Of(c.dir)
	if err != nil {
		return err
	}
	machine, err := readMachine()
	if err != nil {
		return err
	}
	if len(running) > 0 || (machine != nil && machine.Dir == c.dir) {
		return nil
	}
	return checkContent(c.dir)
}

// checkOwner refuses another user's cluster, whose processes the caller could not see.
func (c *cluster) checkOwner() error {
	info, err := os.Stat(c.dir)
	if err != nil {
		return nil //nolint:nilerr // the folder does not exist yet
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if int(owner) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("%s belongs to uid %d, and you are uid %d: run this as its owner or root, or choose another --dir",
			c.dir, owner, os.Geteuid())
	}
	return nil
}
