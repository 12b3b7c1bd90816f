// Command measure records the wall time and the CPU time of commands, including what the
// embedded clusters and their pods use meanwhile, and shows the records in a table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"asterism.dev/tools/internal/cpu"
)

const usage = `usage:
  measure --record FILE --name NAME -- COMMAND...
        run the command, and append the line "NAME WALL_SECONDS CPU_SECONDS" to the file
  measure table --record FILE [REPORT.json]...
        show the recorded steps, and the slowest specs of Ginkgo's reports
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	failed := &exec.ExitError{}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case errors.As(err, &failed) && failed.ExitCode() > 0: // the command has explained its failure
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintf(os.Stderr, "measure: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	record, name := flags.String("record", "", ""), flags.String("name", "", "")
	isTable := len(args) > 0 && args[0] == "table"
	if isTable {
		args = args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w\n%s", err, usage)
	}
	switch {
	case *record == "":
		return fmt.Errorf("--record is missing\n%s", usage)
	case isTable:
		return table(out, *record, flags.Args())
	case *name == "" || flags.NArg() == 0:
		return fmt.Errorf("--name or the command is missing\n%s", usage)
	}
	return measure(ctx, *record, *name, flags.Args())
}

// awaitEnd waits until the processes of a group have ended, for at most half a minute: an
// interrupted program may still stop what it has started.
func awaitEnd(group int) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && !errors.Is(syscall.Kill(group, 0), syscall.ESRCH); {
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the kernel tells no one
	}
}

// measure runs the command, and records its times even if it fails.
func measure(ctx context.Context, record, name string, args []string) error {
	clusters, started := cpu.Observe(), time.Now()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The command's own children end as well.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	failure := command.Run()
	if ctx.Err() != nil {
		awaitEnd(-command.Process.Pid)
	}
	used, _ := clusters.Used()
	if state := command.ProcessState; state != nil {
		used += state.UserTime() + state.SystemTime()
	}
	file, err := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.Join(failure, err)
	}
	name = strings.Join(strings.Fields(name), " ")
	_, err = fmt.Fprintf(file, "%s %.1f %.1f\n", name, time.Since(started).Seconds(), used.Seconds())
	return errors.Join(failure, err, file.Close())
}
