// Command demo builds and deploys a working Nova with an ACTIVE server, on a bare Debian
// machine or an existing cluster, and shows its progress.
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
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const usage = `usage: demo [--dir DIR] [--timeout DURATION] [up | down | push]

  up     build, boot, deploy and show the demo (default); a repetition changes nothing
  down   remove the cluster and everything that the demo created
  push   build the operators' images, push them to IMAGE_REGISTRY, and print how to install them

  --dir DIR            state of the embedded cluster (default: .cluster in the repository's root)
  --timeout DURATION   time in which each step's objects must become ready (default: 20m)

environment:
  CLUSTER=existing     use the cluster of KUBECONFIG instead of booting one
  OPERATORS=installed  with CLUSTER=existing: use operators that OLM or Helm has installed
  IMAGE_REGISTRY=HOST/PATH
                       registry of that cluster's images; the demo pushes missing ones
                       (building the OpenStack image needs root once)
  RELEASE=bookworm     release of Debian whose packages are in the OpenStack image (default: trixie)
  LIBVIRT=1            boot an instance in QEMU on this machine too, and save a picture of its screen
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // without a logger, controller-runtime prints a stack trace after 30 seconds
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nInterrupted. `make demo` continues from here; `make demo-down` removes everything.")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	dir := flags.String("dir", "", "")
	timeout := flags.Duration("timeout", 20*time.Minute, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d, err := newDemo(*dir, *timeout)
	if err != nil {
		return err
	}
	switch command := flags.Arg(0); command {
	case "", "up":
		return d.up(ctx)
	case "down":
		return d.down(ctx)
	case "push":
		return d.publish(ctx, os.Getenv("IMAGE_REGISTRY"))
	default:
		return fmt.Errorf("unknown command %q\n\n%s", command, usage)
	}
}
