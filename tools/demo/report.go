package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

// shown is a command whose output the demo ends with.
type shown struct {
	what    string // as a person types it
	command command
	output  string
}

// report shows what was made, and what to type next.
func (d *demo) report(ctx context.Context, out io.Writer, elapsed time.Duration) error {
	commands := d.commands()
	group, within := errgroup.WithContext(ctx)
	for i := range commands {
		group.Go(func() (err error) {
			commands[i].output, err = d.patiently(within, commands[i].command)
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		return fmt.Errorf("everything is ready, but cannot be shown: %w", err)
	}
	_, _ = fmt.Fprintln(out)
	objects, err := d.kube.family(ctx)
	if err != nil {
		return err
	}
	all := newFamily(objects)
	if root := all.find("ControlPlane", controlPlane); root != nil {
		if err := all.tree(out, root, time.Now()); err != nil {
			return err
		}
	}
	for _, command := range commands {
		_, _ = fmt.Fprintf(out, "\n$ %s\n%s", command.what, command.output)
	}
	d.next(out, elapsed)
	return nil
}

// commands show the cloud as its own tools see it.
func (d *demo) commands() []shown {
	client := func(what string) shown {
		return shown{what: what, command: d.kubectl("", "exec", "--namespace", namespace, "deployment/openstackclient", "--", "sh", "-c", what)}
	}
	all := []shown{
		client("openstack compute service list"),
		client("openstack endpoint list"),
		{what: "nova-manage cell_v2 list_cells", command: d.kubectl("", "exec", "--namespace", namespace,
			controlPlane+"-superconductor-0", "--container", "nova-conductor", "--", "nova-manage", "cell_v2", "list_cells")},
		{what: d.short(d.bootCommand().args[0]) + " " + serverName, command: d.bootCommand()},
	}
	if d.existing {
		return all
	}
	return append(all, d.filesOf("shared-files-0", "shared-files-1"), d.filesOf("shared-files-1", "shared-files-0"))
}

// filesOf shows what one pod sees of the other.
func (d *demo) filesOf(pod, other string) shown {
	args := []string{"exec", "--namespace", namespace, pod, "--", "cat", "/shared/" + other}
	return shown{what: "kubectl " + strings.Join(args, " "), command: d.kubectl("", args...)}
}

// patiently repeats a command for a while: the pod in which it runs may be
// replaced just now, when an operator was.
func (d *demo) patiently(ctx context.Context, c command) (output string, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 2*time.Second, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
		output, err = d.output(ctx, c)
		return err == nil, nil
	})
	return output, err
}

// next says what to type next.
func (d *demo) next(out io.Writer, elapsed time.Duration) {
	_, _ = fmt.Fprintf(out, "\nDone in %s. Next:\n", elapsed.Truncate(time.Second))
	if !d.existing {
		_, _ = fmt.Fprintf(out, "  . %s/env\n", d.short(d.dir))
	}
	_, _ = fmt.Fprintf(out, `  kubectl get openstack --namespace %[1]s
  kubectl exec --namespace %[1]s deployment/openstackclient -- openstack hypervisor list
  kubectl edit controlplane %[2]s --namespace %[1]s
  make demo-down
`, namespace, controlPlane)
}
