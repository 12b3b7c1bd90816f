package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
)

// shown is a command whose output the demo ends with.
type shown struct {
	what   string   // as a person types it
	args   []string // of kubectl
	output string
}

// report shows what was made, and what to type next.
func (d *demo) report(ctx context.Context, out io.Writer, elapsed time.Duration) error {
	commands := []shown{
		client("openstack compute service list"),
		client("openstack endpoint list"),
		{what: "nova-manage cell_v2 list_cells", args: []string{
			"exec", "--namespace", namespace, controlPlane + "-superconductor-0", "--container", "nova-conductor", "--", "nova-manage", "cell_v2", "list_cells",
		}},
	}
	group, within := errgroup.WithContext(ctx)
	for i := range commands {
		group.Go(func() (err error) {
			commands[i].output, err = d.output(within, d.kubectl("", commands[i].args...))
			return err
		})
	}
	objects, err := d.kube.family(ctx)
	if err != nil {
		return err
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	all := newFamily(objects)
	if root := all.find("ControlPlane", controlPlane); root != nil {
		if err := all.tree(out, root, time.Now()); err != nil {
			return err
		}
	}
	for _, command := range commands {
		_, _ = fmt.Fprintf(out, "\n$ %s\n%s", command.what, command.output)
	}
	return d.next(out, elapsed)
}

// client is a command of OpenStack's own client, in its pod.
func client(what string) shown {
	return shown{what: what, args: []string{"exec", "--namespace", namespace, "deployment/openstackclient", "--", "sh", "-c", what}}
}

// next says what to type next.
func (d *demo) next(out io.Writer, elapsed time.Duration) error {
	server, err := d.log("server")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `
%s

Done in %s. Next:
`, server, elapsed.Truncate(time.Second))
	if err == nil && !d.existing {
		_, err = fmt.Fprintf(out, "  . %s/env\n", d.short(d.dir))
	}
	if err == nil {
		_, err = fmt.Fprintf(out, `  kubectl get openstack --namespace %[1]s
  kubectl exec --namespace %[1]s deployment/openstackclient -- openstack catalog list
  kubectl edit controlplane %[2]s --namespace %[1]s
  make demo-down
`, namespace, controlPlane)
	}
	return err
}
