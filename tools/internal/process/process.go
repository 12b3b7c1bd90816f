// Package process starts, finds and stops the processes of the embedded clusters.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A component's process is recognized by two variables of its environment instead of a
// pid file: a run killed before it records a pid loses no process, and a recycled pid is
// never mistaken for a component's.
const (
	dirVariable       = "ASTERISM_CLUSTER_DIR"
	componentVariable = "ASTERISM_CLUSTER_COMPONENT"
)

// tick is the unit of times in /proc/PID/stat, in every Linux user space.
const tick = 10 * time.Millisecond

// Process is a running process of a cluster.
type Process struct {
	PID       int
	Parent    int
	Dir       string // of the cluster
	Component string
	Args      []string
	Started   time.Time
	Ticks     string // start time as in /proc/PID/stat; with the pid it names one process of this boot
	// Leader is false for a process that a component started, like containerd's shims.
	Leader bool
	// CPU is the time of the process and of the children for which it has waited.
	CPU time.Duration
}

// Of lists the running processes of the cluster in a folder.
func Of(dir string) ([]Process, error) {
	all, err := All("/proc")
	return slices.DeleteFunc(all, func(p Process) bool { return p.Dir != dir }), err
}

// All lists the running processes of all clusters.
func All(proc string) ([]Process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes (possible on Linux only): %w", err)
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := read(proc, pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// read returns false if the pid is not a running process of a cluster.
func read(proc string, pid int) (Process, bool) {
	folder := filepath.Join(proc, strconv.Itoa(pid))
	environment, err := os.ReadFile(filepath.Join(folder, "environ"))
	if err != nil || !bytes.Contains(environment, []byte(dirVariable+"=")) {
		return Process{}, false
	}
	variables := map[string]string{}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		key, value, _ := strings.Cut(string(variable), "=")
		variables[key] = value
	}
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Process{}, false
	}
	commandLine, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return Process{}, false
	}
	// These fields follow the command's name, which may contain spaces and parentheses.
	// proc(5) counts from 1: the state (3) is the first here.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const parent, session, firstTime, lastTime, started = 4 - 3, 6 - 3, 14 - 3, 17 - 3, 22 - 3
	p := Process{PID: pid, Dir: variables[dirVariable], Component: variables[componentVariable]}
	p.Parent, _ = strconv.Atoi(fields[parent])
	p.Leader = fields[session] == strconv.Itoa(pid)
	p.Args = strings.Split(strings.TrimSuffix(string(commandLine), "\x00"), "\x00")
	p.Ticks, p.Started = fields[started], startTime(fields[started])
	for _, ticks := range fields[firstTime : lastTime+1] { // of user and system, then both of the children
		count, _ := strconv.Atoi(ticks)
		p.CPU += time.Duration(count) * tick
	}
	return p, true
}

// startTime converts ticks since boot to a time.
func startTime(ticks string) time.Time {
	count, _ := strconv.ParseInt(ticks, 10, 64)
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(count)*tick - time.Duration(up.Nano()))
}

// Find returns the process that was started as the component, or nil.
func Find(all []Process, component string) *Process {
	for i := range all {
		if all[i].Leader && all[i].Component == component {
			return &all[i]
		}
	}
	return nil
}

// running reports whether the process still runs, and its pid was not recycled.
func (p Process) running() bool {
	now, ok := read("/proc", p.PID)
	return ok && now.Dir == p.Dir && now.Ticks == p.Ticks
}

// Signal sends a signal to exactly the process that was found: it opens the handle, then
// checks the identity, so a pid that was recycled in between gets no signal.
func (p Process) Signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if !p.running() {
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s (pid %d): %w", p.Component, p.PID, err)
	}
	return nil
}

// awaitEnd waits for the end of the process or of the context.
func (p Process) awaitEnd(ctx context.Context) error {
	return Poll(ctx, 20*time.Millisecond, func() error {
		if p.running() {
			return fmt.Errorf("%s (pid %d) still runs", p.Component, p.PID)
		}
		return nil
	})
}

// Stop ends a process with SIGTERM, and after ten seconds with SIGKILL.
func (p Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	terminating, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if p.awaitEnd(terminating) == nil {
		return nil
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	killing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return p.awaitEnd(killing)
}

// Start runs a component in its own session with its output in a log, so that it outlives
// this command and its terminal and inherits no pipe. The channel reports the end of the
// process while this command runs.
func Start(dir, component string, args []string) (<-chan error, error) {
	logPath := LogFile(dir, component)
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	if _, err := fmt.Fprintf(log, "\n==== started %s\n", time.Now().Format(time.RFC3339)); err != nil {
		return nil, err
	}
	command := exec.Command(args[0], args[1:]...) //nolint:noctx // it outlives this command
	command.Dir = "/"
	command.Env = []string{
		// Every component is a Go program. With Go's defaults, garbage collection takes a third of the API server's time.
		"GOGC=400", "GOMEMLIMIT=2GiB",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		dirVariable + "=" + dir,
		componentVariable + "=" + component,
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", component, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return ended, nil
}

// LogFile is the log of a component.
func LogFile(dir, component string) string {
	return filepath.Join(dir, "logs", component+".log")
}

// Poll repeats the check until it passes. If the context ends first, Poll returns the check's last error.
func Poll(ctx context.Context, every time.Duration, check func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// LastLines returns the last lines of a program's output. It shortens long lines too: a line
// of kube-apiserver may fill a screen.
func LastLines(text string, count int) string {
	const width = 300
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-count):]
	for i, line := range lines {
		if len(line) > width {
			lines[i] = line[:width] + "…"
		}
	}
	return strings.Join(lines, "\n")
}
