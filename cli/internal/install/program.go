package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Command is a command line.
type Command struct {
	Args []string
	// Output, if not nil, receives the standard output.
	Output io.Writer
}

// Programs that the plans run, and their arguments.
const (
	kubectl = "kubectl"
	helm    = "helm"

	deleteVerb     = "delete"
	namespaceFlag  = "--namespace"
	ignoreNotFound = "--ignore-not-found"
)

// remedies tell how a program is installed.
var remedies = map[string]string{
	helm:    "install Helm 4, for example with: go install helm.sh/helm/v4/cmd/helm@latest",
	kubectl: "install kubectl as https://kubernetes.io/docs/tasks/tools describes",
}

// Find returns an error with a remedy if a program is not on PATH.
func Find(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return Missing(program)
	}
	return nil
}

// Missing is the error about a program that is not on PATH.
func Missing(program string) error {
	return fmt.Errorf("%s is not on PATH: %s; or use another way of --with", program, remedies[program])
}

// plain are arguments that a shell does not change.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// String returns the command as a person types it.
func (c Command) String() string {
	words := make([]string, len(c.Args))
	for i, word := range c.Args {
		if words[i] = word; !plain.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Program returns a function that runs programs of PATH, with their outputs on out.
func Program(out io.Writer) func(context.Context, Command) error {
	return func(ctx context.Context, c Command) error {
		program := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...) //nolint:gosec // kubectl or helm, as the plan shows
		program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
		program.WaitDelay = 10 * time.Second
		program.Stdout, program.Stderr = out, out
		if c.Output != nil {
			program.Stdout = c.Output
		}
		err := program.Run()
		if errors.Is(err, exec.ErrNotFound) {
			return Missing(c.Args[0])
		} else if err != nil {
			return fmt.Errorf("%s: %w: the lines above have the reason", c, err)
		}
		return nil
	}
}

// command adds the options that select the cluster.
func (p *planner) command(args ...string) Command {
	more := p.Kubectl
	if args[0] == helm {
		more = p.Helm
	}
	return Command{Args: append(slices.Clone(args), more...)}
}

// run adds a step that runs a command.
func (p *planner) run(title string, args ...string) {
	p.runAll(title, []Command{p.command(args...)})
}

// runAll adds a step that runs commands, one after the other.
func (p *planner) runAll(title string, commands []Command) {
	var lines []string
	for _, c := range commands {
		p.programs = append(p.programs, c.Args[0])
		lines = append(lines, c.String())
	}
	p.add(title, strings.Join(lines, "\n"), func(ctx context.Context, _ func(string)) error {
		for _, c := range commands {
			if err := p.Run(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// output runs a command while the plan is made. The command only reads.
func (p *planner) output(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	c := p.command(args...)
	c.Output = &out
	err := p.Run(ctx, c)
	return out.Bytes(), err
}
