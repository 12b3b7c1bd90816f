// Command demo takes a bare Debian machine to a working Nova with an ACTIVE
// server, and shows on the way what it does.
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
)

const usage = `usage: demo [--dir DIR] [--timeout DURATION] [up | down | push]

  up     build, boot, deploy and show the demo (default); repeating it changes nothing
  down   remove the cluster and all that the demo made
  push   build the operators' images, push them to IMAGE_REGISTRY, and say how to install them

  --dir DIR            state of the embedded cluster (default: .cluster in the repository's root)
  --timeout DURATION   how long each part may take to be ready in the cluster (default: 20m)

environment:
  CLUSTER=existing     use the cluster of KUBECONFIG instead of booting one
  IMAGE_REGISTRY=HOST/PATH
                       where that cluster pulls images from; what is missing there is pushed
                       (building the OpenStack image takes root once)
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nInterrupted. `make demo` goes on from here; `make demo-down` removes everything.")
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
		return fmt.Errorf("no command %q\n\n%s", command, usage)
	}
}
