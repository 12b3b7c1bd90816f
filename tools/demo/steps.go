package main

import (
	"context"
	"path/filepath"
	"slices"

	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/progress"
)

const (
	stepTools      = "Preparing the tools"
	stepCluster    = "Starting Kubernetes"
	stepOperators  = "Building the operators"
	stepDriver     = "Building the CSI driver of EFS"
	stepOpenStack  = "Building the OpenStack image"
	stepLoad       = "Loading the OpenStack image"
	stepDeploy     = "Deploying the operators"
	stepServices   = "Starting MariaDB, RabbitMQ, Keystone and Placement"
	stepGlance     = "Starting Glance"
	stepNova       = "Deploying ControlPlane " + controlPlane
	stepCompute    = "Mapping the host of a compute"
	stepServer     = "Booting a server"
	stepFiles      = "Sharing files between two pods"
	stepVariants   = "Loading the image of a compute with libvirt"
	stepGuest      = "Booting an instance in QEMU"
	stepConnection = "Connecting to the cluster"
	stepPush       = "Pushing the images"
)

// steps returns all steps of the demo.
func (d *demo) steps() []step {
	if d.installed {
		return append([]step{
			{stepTools, nil, d.prepareTools},
			{stepConnection, nil, d.connect},
			{stepOpenStack, []string{stepTools}, d.buildOpenStack},
			{stepPush, []string{stepOpenStack}, d.push},
		}, d.deployment(stepPush, stepConnection)...)
	}
	if d.existing {
		return append([]step{
			{stepTools, nil, d.prepareTools},
			{stepConnection, nil, d.connectToDeploy},
			{stepOperators, []string{stepTools}, d.buildOperators},
			{stepOpenStack, []string{stepTools}, d.buildOpenStack},
			{stepPush, []string{stepOperators, stepOpenStack}, d.push},
		}, d.deployment(stepPush, stepConnection)...)
	}
	first := []step{
		{stepTools, nil, d.prepareTools},
		{stepCluster, []string{stepTools}, d.startCluster},
		{stepOperators, []string{stepTools}, d.buildOperators},
		{stepDriver, []string{stepTools}, d.buildDriver},
		{stepOpenStack, []string{stepTools}, d.buildOpenStack},
		{stepLoad, []string{stepCluster, stepOpenStack}, d.loadOpenStack},
	}
	last := []step{{stepFiles, []string{stepServices, stepDeploy}, d.shareFiles}}
	if d.libvirt {
		last = append(last, step{stepVariants, []string{stepLoad}, d.loadVariants}, step{stepGuest, []string{stepServer, stepVariants}, d.bootGuest})
	}
	return slices.Concat(first, d.deployment(stepLoad, stepCluster, stepOperators, stepDriver), last)
}

// deployment returns the steps inside the cluster.
func (d *demo) deployment(images string, cluster ...string) []step {
	deploy := d.deployOperators
	if d.installed {
		deploy = d.awaitOperators
	}
	return []step{
		{stepServices, []string{images, cluster[0]}, d.startServices},
		{stepDeploy, append(cluster, images), deploy},
		{stepNova, []string{stepServices, stepDeploy}, d.deployNova},
		{stepCompute, []string{stepServices, stepDeploy}, d.awaitCompute},
		{stepGlance, []string{stepServices}, d.startGlance},
		{stepServer, []string{stepNova, stepCompute, stepGlance}, d.bootServer},
	}
}

// prepareTools builds the repository's tools.
func (d *demo) prepareTools(ctx context.Context, line *progress.Line) error {
	tools := []string{"cluster", "images"}
	if d.existing {
		tools = tools[1:]
	}
	return d.buildTools(ctx, line, tools...)
}

func (d *demo) buildTools(ctx context.Context, line *progress.Line, names ...string) error {
	program := gobuild.Program{Dir: filepath.Join(d.root, "tools"), Output: d.work("bin") + "/"}
	for _, name := range names {
		program.Packages = append(program.Packages, "./"+name)
	}
	return d.build(ctx, line, "", "tools", program)
}

// build builds a program, which is a part of the step, with a log of that name.
func (d *demo) build(ctx context.Context, line *progress.Line, part, name string, program gobuild.Program) error {
	program.Verbose = true
	return d.run(ctx, line, command{name: "build-" + name, part: part, dir: program.Dir, env: program.Env(), args: program.Args()})
}
