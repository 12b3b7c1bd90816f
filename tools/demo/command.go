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
	"syscall"
	"time"

	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// command is a program that a step runs.
type command struct {
	name string   // of the log file
	part string   // of the step, which the step's line shows before the output
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
func (d *demo) run(ctx context.Context, line *progress.Line, c command) error {
	path := d.work("logs", c.name+".log")
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	out := line.Follow(c.part, log)
	if err := d.execute(ctx, c, nil, out, out); err != nil {
		content, _ := os.ReadFile(path)
		text := string(content)
		if c.args[0] == "go" {
			text = gobuild.Problems(text)
		}
		return &commandError{command: c, log: d.short(path), tail: process.LastLines(text, 15), err: err}
	}
	return nil
}

// output runs a program and returns its standard output.
func (d *demo) output(ctx context.Context, c command) (string, error) {
	var out, problem bytes.Buffer
	if err := d.execute(ctx, c, nil, &out, &problem); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.args, " "), err, indent(process.LastLines(problem.String(), 15)))
	}
	return out.String(), nil
}

// execute runs the program in its own process group, so that an interrupt ends all its
// processes and reaches each only once.
func (d *demo) execute(ctx context.Context, c command, in io.Reader, out, problem io.Writer) error {
	env := slices.Concat(d.env, c.env, []string{progress.Details})
	program := exec.CommandContext(ctx, lookPath(c.args[0], env), c.args[1:]...)
	program.Args[0] = c.args[0]
	program.Dir, program.Env = d.root, env
	if c.dir != "" {
		program.Dir = c.dir
	}
	program.Stdin, program.Stdout, program.Stderr = in, out, problem
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGINT) }
	program.WaitDelay = 30 * time.Second
	err := program.Run()
	if state := program.ProcessState; state != nil {
		progress.Spent(ctx, state.UserTime()+state.SystemTime())
	}
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

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// short returns a path relative to the repository's root.
func (d *demo) short(path string) string {
	return strings.TrimPrefix(path, d.root+string(filepath.Separator))
}
