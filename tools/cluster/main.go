// Command cluster runs a real Kubernetes, built from its Go modules, on this machine for
// newcomers, the demo and CI.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: cluster [--dir DIR] COMMAND

  up [--control-plane-only]   start the cluster, or the components that do not run
  down                        stop the cluster and remove everything that it created
  status                      show each component, its pid, start time and health
  load IMAGE.tar...           import docker archives into the cluster's containerd

With --control-plane-only, up starts etcd, kube-apiserver and kube-controller-manager, without root.
Otherwise it also starts kube-scheduler, containerd, kubelet, kube-proxy and CoreDNS; this needs
root on Debian or Ubuntu.

  --dir DIR   folder of the cluster's state (default: .cluster in the repository's root)
`

// errUsage makes main print the usage.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "cluster: %v\n\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	global := newFlags("cluster")
	dir := global.String("dir", "", "")
	if err := parse(global, args); err != nil {
		return err
	}
	command, rest := global.Arg(0), global.Args()
	if command == "" {
		return fmt.Errorf("%w: no command given", errUsage)
	}
	flags := newFlags(command)
	controlPlaneOnly := false
	if command == "up" {
		flags.BoolVar(&controlPlaneOnly, "control-plane-only", false, "")
	}
	if err := parse(flags, rest[1:]); err != nil {
		return err
	}
	if command != "load" && flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	c, err := openCluster(*dir)
	if err != nil {
		return err
	}
	switch command {
	case "up":
		return c.up(ctx, controlPlaneOnly)
	case "down":
		return c.down(ctx)
	case "status":
		return c.status(ctx, os.Stdout)
	case "load":
		return c.load(ctx, flags.Args())
	}
	return fmt.Errorf("%w: unknown command %q", errUsage, command)
}

func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {}
	flags.SetOutput(io.Discard)
	return flags
}

func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}
