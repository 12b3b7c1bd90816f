// Command efs-driver is a stand-in, on a machine without EFS, for the programs around the
// CSI driver of EFS. Each part is called by the name of the original program.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// parts are the functions by the name of the program.
var parts = map[string]func(ctx context.Context, args []string) error{
	"mount.efs":                 mountEFS,
	"amazon-efs-mount-watchdog": watch,
	"csi-node-driver-registrar": register,
	"livenessprobe":             serveHealth,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name := filepath.Base(os.Args[0])
	part, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s is not a known name: call this program as mount.efs, amazon-efs-mount-watchdog, csi-node-driver-registrar or livenessprobe\n", name)
		os.Exit(2)
	}
	if err := part(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// watch stands in for the watchdog of TLS tunnels, and has no tunnels to watch.
func watch(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return nil
}
