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
		return fmt.Errorf("%s: %w\nlast lines of %s:\n%s", strings.Join(c.args, " "), err, d.short(path), indent(process.LastLines(text, 15)))
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
	// The shell looks for the program on the PATH of program.Env.
	program := exec.CommandContext(ctx, "sh", append([]string{"-c", `exec "$0" "$@"`}, c.args...)...)
	program.Dir, program.Env = d.root, slices.Concat(d.env, c.env, []string{progress.Details})
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

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// short returns a path relative to the repository's root.
func (d *demo) short(path string) string {
	return strings.TrimPrefix(path, d.root+string(filepath.Separator))
}
