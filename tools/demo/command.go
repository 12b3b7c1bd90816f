package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// command is a program that a step runs.
type command struct {
	name string   // of the log file
	dir  string   // working directory, default the repository's root
	env  []string // added to the demo's
	args []string
}

// commandError is a program that failed, with the last lines of its output.
type commandError struct {
	command command
	log     string // file with the whole output
	tail    string
	err     error
}

func (e *commandError) Error() string {
	text := fmt.Sprintf("%s: %v", strings.Join(e.command.args, " "), e.err)
	if e.tail != "" {
		text += fmt.Sprintf("\nlast lines of %s:\n%s", e.log, indent(e.tail))
	}
	return text
}

func (e *commandError) Unwrap() error { return e.err }

// run runs a program. The last line of its output is the step's detail, and the work
// folder keeps its log.
func (d *demo) run(ctx context.Context, line *line, c command) error {
	path := d.work("logs", c.name+".log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	out := &lastLine{out: log, say: line.note}
	if err := d.execute(ctx, c, nil, out, out); err != nil {
		content, _ := os.ReadFile(path)
		return &commandError{command: c, log: d.short(path), tail: lastLines(string(content), 15), err: err}
	}
	return nil
}

// output runs a program and returns its standard output.
func (d *demo) output(ctx context.Context, c command) (string, error) {
	var out, problem bytes.Buffer
	if err := d.execute(ctx, c, nil, &out, &problem); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, indent(lastLines(problem.String(), 15)))
	}
	return out.String(), nil
}

// execute runs the program in its own process group, so that an interrupt ends all its
// processes and reaches each only once.
func (d *demo) execute(ctx context.Context, c command, in io.Reader, out, problem io.Writer) error {
	env := slices.Concat(d.env, c.env)
	process := exec.CommandContext(ctx, lookPath(c.args[0], env), c.args[1:]...)
	process.Args[0] = c.args[0]
	process.Dir, process.Env = d.root, env
	if c.dir != "" {
		process.Dir = c.dir
	}
	process.Stdin, process.Stdout, process.Stderr = in, out, problem
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGINT) }
	process.WaitDelay = 30 * time.Second
	err := process.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// lookPath finds a program on the PATH of the given environment.
func lookPath(name string, env []string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, setting := range slices.Backward(env) {
		path, found := strings.CutPrefix(setting, "PATH=")
		if !found {
			continue
		}
		for _, folder := range filepath.SplitList(path) {
			file := filepath.Join(folder, name)
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
		break
	}
	return name
}

// lastLine copies its input to out and passes the last complete line of each write to say.
type lastLine struct {
	mu   sync.Mutex
	out  io.Writer
	say  func(string)
	rest string
}

func (l *lastLine) Write(content []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.FieldsFunc(l.rest+string(content)+"\x00", func(r rune) bool { return r == '\n' || r == '\r' })
	l.rest = strings.TrimSuffix(lines[len(lines)-1], "\x00")
	for _, text := range slices.Backward(lines[:len(lines)-1]) {
		if text = strings.TrimSpace(text); text != "" {
			l.say(text)
			break
		}
	}
	return l.out.Write(content)
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// short returns a path relative to the repository's root.
func (d *demo) short(path string) string {
	return strings.TrimPrefix(path, d.root+string(filepath.Separator))
}
