package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"asterism.dev/cli/tree"
)

// shown is a command whose output is part of the report.
type shown struct {
	typed   string // as a person types it
	command command
	output  string
}

// report shows the created objects and the next commands.
func (d *demo) report(ctx context.Context, out io.Writer, elapsed time.Duration) error {
	commands := d.commands()
	group, within := errgroup.WithContext(ctx)
	for i := range commands {
		group.Go(func() (err error) {
			commands[i].output, err = d.retry(within, commands[i].command)
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		return fmt.Errorf("the demo is ready, but its report failed: %w", err)
	}
	_, _ = fmt.Fprintln(out)
	objects, err := d.kube.allObjects(ctx)
	if err != nil {
		return err
	}
	all := tree.New(objects)
	if root := find(all, "ControlPlane", controlPlane); root != nil {
		if err := tree.Write(out, []tree.Node{all.Node(root)}, tree.StyleOf(out), time.Now()); err != nil {
			return err
		}
	}
	for _, command := range commands {
		_, _ = fmt.Fprintf(out, "\n$ %s\n%s", command.typed, command.output)
	}
	d.next(out, elapsed)
	return nil
}

// commands returns OpenStack commands that show the cloud.
func (d *demo) commands() []shown {
	client := func(typed string) shown {
		return shown{typed: typed, command: d.kubectl("", "exec", "--namespace", namespace, "deployment/openstackclient", "--", "sh", "-c", typed)}
	}
	all := []shown{
		client("openstack compute service list"),
		client("openstack server list"),
		{typed: "nova-manage cell_v2 list_cells", command: d.kubectl("", "exec", "--namespace", namespace,
			controlPlane+"-superconductor-0", "--container", "nova-conductor", "--", "nova-manage", "cell_v2", "list_cells")},
		{typed: d.short(d.bootCommand().args[0]) + " " + serverName, command: d.bootCommand()},
	}
	if d.existing {
		return all
	}
	if d.libvirt {
		all = append(all, client("openstack console log show "+guestName+" | tail -n 1"))
	}
	return append(all, d.filesOf("shared-files-0", "shared-files-1"), d.filesOf("shared-files-1", "shared-files-0"))
}

// filesOf shows the file of the other pod as one pod reads it.
func (d *demo) filesOf(pod, other string) shown {
	args := []string{"exec", "--namespace", namespace, pod, "--", "cat", "/shared/" + other}
	return shown{typed: "kubectl " + strings.Join(args, " "), command: d.kubectl("", args...)}
}

// retry repeats a failing command for up to four minutes: an updated operator may be
// replacing the pod in which it runs.
func (d *demo) retry(ctx context.Context, c command) (output string, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 2*time.Second, 4*time.Minute, true, func(ctx context.Context) (bool, error) {
		output, err = d.output(ctx, c)
		return err == nil, nil
	})
	return output, err
}

// next prints commands to try next.
func (d *demo) next(out io.Writer, elapsed time.Duration) {
	if d.libvirt {
		_, _ = fmt.Fprintf(out, "\nThe screen of instance %s, through nova-novncproxy: %s\n", guestName, d.short(d.work(guestPicture)))
	}
	_, _ = fmt.Fprintf(out, "\nDone in %s. Next:\n", elapsed.Truncate(time.Second))
	if !d.existing {
		_, _ = fmt.Fprintf(out, "  . %s/env\n", d.short(d.dir))
	}
	_, _ = fmt.Fprintf(out, `  kubectl get openstack --namespace %[1]s
  kubectl exec --namespace %[1]s deployment/openstackclient -- openstack server list
  kubectl exec --namespace %[1]s deployment/openstackclient -- openstack --os-compute-api-version 2.37 server create second --image empty --flavor tiny --nic none
  kubectl patch controlplane %[2]s --namespace %[1]s --type=merge --patch '{"spec":{"nova":{"api":{"replicas":2}}}}'
  make cli BIN=/usr/local/bin && kubectl asterism status --namespace %[1]s
  make demo-down
`, namespace, controlPlane)
}
