package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A component's process is recognised by two variables of its environment instead of a
// pid file: a run killed before it records a pid loses no process, and a recycled pid is
// never mistaken for a component's.
const (
	dirVariable       = "ASTERISM_CLUSTER_DIR"
	componentVariable = "ASTERISM_CLUSTER_COMPONENT"
)

// process is a running process of a cluster.
type process struct {
	pid       int
	component string
	args      []string
	started   time.Time
	ticks     string // start time as in /proc/PID/stat; with the pid it names one process of this boot
	// leader is false for a process that a component started, like containerd's shims.
	leader bool
}

// processes lists the running processes of the cluster in dir.
func processes(dir string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes (possible on Linux only): %w", err)
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(dir, pid); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// readProcess returns false if the pid is not a running process of the cluster.
func readProcess(dir string, pid int) (process, bool) {
	path := fmt.Sprintf("/proc/%d/", pid)
	environment, err := os.ReadFile(path + "environ")
	if err != nil {
		return process{}, false
	}
	variables := map[string]string{}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		key, value, _ := strings.Cut(string(variable), "=")
		variables[key] = value
	}
	if variables[dirVariable] != dir {
		return process{}, false
	}
	stat, err := os.ReadFile(path + "stat")
	if err != nil {
		return process{}, false
	}
	commandLine, err := os.ReadFile(path + "cmdline")
	if err != nil {
		return process{}, false
	}
	// These fields follow the command's name, which may contain spaces and parentheses.
	// proc(5) counts from 1: session (6) and starttime (22) are the fourth and twentieth here.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	p := process{pid: pid, component: variables[componentVariable], ticks: fields[19], leader: fields[3] == strconv.Itoa(pid)}
	p.args = strings.Split(strings.TrimSuffix(string(commandLine), "\x00"), "\x00")
	p.started = startTime(fields[19])
	return p, true
}

// startTime converts clock ticks since boot (100 a second in every Linux user space) to a time.
func startTime(ticks string) time.Time {
	count, _ := strconv.ParseInt(ticks, 10, 64)
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}
	}
	seconds, _, _ := strings.Cut(string(uptime), " ")
	up, _ := strconv.ParseFloat(seconds, 64)
	age := time.Duration(up*float64(time.Second)) - time.Duration(count)*10*time.Millisecond
	return time.Now().Add(-age)
}

// find returns the process that was started as the component, or nil.
func find(all []process, component string) *process {
	for i := range all {
		if all[i].leader && all[i].component == component {
			return &all[i]
		}
	}
	return nil
}

// signal sends a signal to exactly the process that was found: it opens the handle, then
// checks the identity, so a pid that was recycled in between gets no signal.
func (p process) signal(dir string, sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	now, ok := readProcess(dir, p.pid)
	if !ok || now.ticks != p.ticks {
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s (pid %d): %w", p.component, p.pid, err)
	}
	return nil
}

// awaitEnd waits for the end of the process or of the context.
func (p process) awaitEnd(ctx context.Context, dir string) error {
	return poll(ctx, 20*time.Millisecond, func() error {
		if now, ok := readProcess(dir, p.pid); ok && now.ticks == p.ticks {
			return fmt.Errorf("%s (pid %d) still runs", p.component, p.pid)
		}
		return nil
	})
}

// stop ends a process with SIGTERM, and after ten seconds with SIGKILL.
func (p process) stop(ctx context.Context, dir string) error {
	if err := p.signal(dir, syscall.SIGTERM); err != nil {
		return err
	}
	terminating, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if p.awaitEnd(terminating, dir) == nil {
		return nil
	}
	if err := p.signal(dir, syscall.SIGKILL); err != nil {
		return err
	}
	killing, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return p.awaitEnd(killing, dir)
}

// start runs a component in its own session with its output in a log, so that it outlives
// this command and its terminal and inherits no pipe. The channel reports the end of the
// process while this command runs.
func start(dir, component string, args []string) (<-chan error, error) {
	logPath := logFile(dir, component)
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

func logFile(dir, component string) string {
	return filepath.Join(dir, "logs", component+".log")
}

// poll repeats the check until it passes. If the context ends first, poll returns the check's last error.
func poll(ctx context.Context, every time.Duration, check func() error) error {
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
