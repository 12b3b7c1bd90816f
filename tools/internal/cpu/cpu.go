// Package cpu measures the CPU time of programs, of the embedded clusters and of their pods.
package cpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"asterism.dev/tools/internal/process"
)

// Own is the CPU time of this program and of the programs for whose end it has waited.
func Own() time.Duration {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if syscall.Getrusage(who, &usage) == nil {
			all += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return all
}

// podsCgroup is the kubelet's cgroup of all pods.
const podsCgroup = "kubepods"

// interval is the time between two looks at the clusters. The last one before the end of a
// process counts.
const interval = 5 * time.Second

// Clusters adds up the CPU time of the embedded clusters, whose processes outlive the command
// that starts them, and of their pods.
type Clusters struct {
	proc, cgroups string
	mu            sync.Mutex
	last          map[string]time.Duration // of each process and of the pods
	used          time.Duration
	pods          bool
	stop          chan struct{}
}

// Observe looks at the clusters until Used is called.
func Observe() *Clusters {
	c := newClusters("/proc", "/sys/fs/cgroup")
	c.stop = make(chan struct{})
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.look()
			case <-c.stop:
				return
			}
		}
	}()
	return c
}

// newClusters does not count the time before the first look.
func newClusters(proc, cgroups string) *Clusters {
	c := &Clusters{proc: proc, cgroups: cgroups, last: map[string]time.Duration{}}
	c.look()
	c.used = 0
	return c
}

// Used returns the CPU time since Observe, and whether it contains the time of the pods.
func (c *Clusters) Used() (used time.Duration, pods bool) {
	close(c.stop)
	c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.pods
}

func (c *Clusters) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, _ := process.All(c.proc) // an error means that this machine has no clusters
	own := map[int]bool{}
	for _, p := range all {
		own[p.PID] = true
	}
	for _, p := range all {
		if !own[p.Parent] { // the parent's time will contain that of the others
			c.add(strconv.Itoa(p.PID)+" "+p.Ticks, p.CPU)
		}
	}
	if used, found := c.ofPods(); found {
		c.pods = true
		c.add("pods", used)
	}
}

// add counts the time since the last look. A time that went back is that of a new cgroup.
func (c *Clusters) add(name string, now time.Duration) {
	if last := c.last[name]; now >= last {
		c.used += now - last
	} else {
		c.used += now
	}
	c.last[name] = now
}

// ofPods reads the kubelet's cgroup of all pods, which keeps the time of pods that ended.
func (c *Clusters) ofPods() (used time.Duration, found bool) {
	if content, err := os.ReadFile(filepath.Join(c.cgroups, podsCgroup, "cpu.stat")); err == nil { // version 2
		for line := range strings.Lines(string(content)) {
			if text, is := strings.CutPrefix(line, "usage_usec "); is {
				count, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				return time.Duration(count) * time.Microsecond, err == nil
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.cgroups, "*", podsCgroup, "cpuacct.usage")) // version 1
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil {
			count, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
			return time.Duration(count), err == nil
		}
	}
	return 0, false
}
