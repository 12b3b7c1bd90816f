package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"asterism.dev/tools/internal/progress"
)

func (d *demo) clusterCommand(name string, args ...string) command {
	return command{name: "cluster-" + name, args: slices.Concat([]string{d.work("bin", "cluster"), "--dir", d.dir, name}, args)}
}

// startCluster boots the embedded cluster and reads its environment for later commands.
func (d *demo) startCluster(ctx context.Context, line *progress.Line) error {
	if err := d.run(ctx, line, d.clusterCommand("up")); err != nil {
		return err
	}
	env, err := d.output(ctx, command{args: []string{"sh", "-c", `. "$0" && exec env -0`, filepath.Join(d.dir, "env")}})
	if err != nil {
		return err
	}
	d.kube, err = newKube(strings.FieldsFunc(env, func(r rune) bool { return r == 0 }))
	if err != nil {
		return err
	}
	return d.nameInstances(ctx)
}

// connect selects the cluster of KUBECONFIG.
func (d *demo) connect(_ context.Context, line *progress.Line) error {
	kube, err := newKube(d.env)
	if err != nil {
		return err
	}
	d.kube = kube
	line.Say(d.kube.server + ", images from " + d.registry)
	return nil
}

// connectToDeploy selects the cluster of KUBECONFIG, if this account may deploy operators there.
func (d *demo) connectToDeploy(ctx context.Context, line *progress.Line) error {
	if err := d.connect(ctx, line); err != nil {
		return err
	}
	return d.kube.checkRights(ctx)
}

func (d *demo) loadOpenStack(ctx context.Context, line *progress.Line) error {
	return d.run(ctx, line, d.clusterCommand("load", d.work("images", openStackArchive)))
}

// down removes the embedded cluster and the files that the demo built. On an existing
// cluster it removes the demo's namespace.
func (d *demo) down(ctx context.Context) error {
	if err := d.checkRequirements(); err != nil {
		return err
	}
	if err := d.makeWorkFolder(); err != nil {
		return err
	}
	steps := []step{
		{stepTools, nil, func(ctx context.Context, line *progress.Line) error { return d.buildTools(ctx, line, "cluster") }},
		{"Removing the cluster", []string{stepTools}, func(ctx context.Context, line *progress.Line) error {
			if err := d.run(ctx, line, d.clusterCommand("down")); err != nil {
				return err
			}
			if err := d.endGuests(ctx, line); err != nil {
				return err
			}
			return removeDriverFolders()
		}},
	}
	if d.existing {
		steps = d.removal()
	}
	if err := runSteps(ctx, progress.New(os.Stdout, len(steps)), steps); err != nil {
		return err
	}
	return os.RemoveAll(d.work())
}
