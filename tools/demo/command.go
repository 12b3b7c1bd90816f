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
	name string   // of its log
	dir  string   // working directory, default the repository's root
	env  []string // beside the demo's
	args []string
}

// commandError is a program that failed, with the end of what it printed.
type commandError struct {
	command command
	log     string // file with all that it printed
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

// run runs a program; its last line is the step's detail, and its log stays in
// the work folder.
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

// output runs a program for what it prints on standard output.
func (d *demo) output(ctx context.Context, c command) (string, error) {
	var out, problem bytes.Buffer
	if err := d.execute(ctx, c, nil, &out, &problem); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, indent(lastLines(problem.String(), 15)))
	}
	return out.String(), nil
}

// execute gives the program a process group of its own: an interrupt ends all
// of it, and reaches nothing twice.
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

// lastLine passes on what is written and says each last complete line.
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

// short is a path as a person types it in the repository's root.
func (d *demo) short(path string) string {
	return strings.TrimPrefix(path, d.root+string(filepath.Separator))
}
