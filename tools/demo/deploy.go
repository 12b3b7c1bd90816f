package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"asterism.dev/tools/internal/progress"
)

// kubectl returns a command on the cluster.
func (d *demo) kubectl(name string, args ...string) command {
	return command{name: name, env: d.kube.env, args: append([]string{"kubectl"}, args...)}
}

// apply applies manifests to the demo's namespace. Fields of other owners stay, and
// applying unchanged manifests writes nothing.
func (d *demo) apply(ctx context.Context, line *progress.Line, name string, source ...string) error {
	return d.applyAnywhere(ctx, line, name, append(source, "--namespace="+namespace)...)
}

// applyAnywhere is apply for manifests that name their namespaces.
func (d *demo) applyAnywhere(ctx context.Context, line *progress.Line, name string, source ...string) error {
	args := []string{"apply", "--server-side", "--force-conflicts", "--field-manager=" + fieldManager}
	return d.run(ctx, line, d.kubectl("apply-"+name, slices.Concat(args, source)...))
}

// folder returns a kustomization of the examples, with the image of the run.
func (d *demo) folder(name string) (string, error) {
	source := filepath.Join("examples", name)
	if d.openStack() == defaultImage {
		return filepath.Join(d.root, source), nil
	}
	images := []types.Image{{Name: openStackImage, NewName: d.image(openStackImage), NewTag: d.release}}
	return d.work(name), d.writeKustomization(name, source, images)
}

// startServices creates the namespace, the Secrets and the services that a ControlPlane
// refers to.
func (d *demo) startServices(ctx context.Context, line *progress.Line) error {
	if err := d.apply(ctx, line, "namespace", "-f", d.example("demo", "namespace.yaml")); err != nil {
		return err
	}
	secrets := command{name: "secrets", env: d.kube.env, args: []string{d.example("demo", "secrets"), namespace}}
	if err := d.run(ctx, line, secrets); err != nil {
		return err
	}
	servers := "demo-persistent"
	if d.existing { // its volumes may not be writable for every user
		servers = "demo"
	}
	folder, err := d.folder(servers)
	if err != nil {
		return err
	}
	if err := d.apply(ctx, line, "services", "-k", folder); err != nil {
		return err
	}
	return d.awaitAll(ctx, line,
		statefulSet("mariadb"),
		statefulSet("rabbitmq"),
		deployment("keystone"),
		deployment("placement"),
		deployment("openstackclient"),
	)
}

// startGlance starts Glance and a stand-in for Neutron, and makes an image.
func (d *demo) startGlance(ctx context.Context, line *progress.Line) error {
	folder, err := d.folder("demo-services")
	if err != nil {
		return err
	}
	if err := d.apply(ctx, line, "glance", "-k", folder); err != nil {
		return err
	}
	if err := d.awaitAll(ctx, line, deployment("glance"), deployment("neutron")); err != nil {
		return err
	}
	return d.run(ctx, line, command{name: "image", env: d.kube.env, args: []string{d.example("demo-services", "upload"), namespace}})
}

func (d *demo) example(parts ...string) string {
	return filepath.Join(append([]string{d.root, "examples"}, parts...)...)
}

// awaitAll waits for all objects, one after the other.
func (d *demo) awaitAll(ctx context.Context, line *progress.Line, all ...object) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("gave up after %s", d.timeout))
	defer cancel()
	for _, wanted := range all {
		say := line.Say
		if len(all) > 1 {
			line.Note(wanted.String())
			say = func(message string) { line.Say(wanted.String() + ": " + message) }
		}
		if err := d.kube.await(ctx, wanted, say); err != nil {
			return err
		}
	}
	return nil
}

// deployOperators applies the CRDs and the operators, hands the demo's namespace over to
// the operators, and waits until the ControlPlane's CRD and the operators are ready.
func (d *demo) deployOperators(ctx context.Context, line *progress.Line) error {
	names, err := d.operators()
	if err != nil {
		return err
	}
	if err := d.writeOverlay(); err != nil {
		return err
	}
	if !d.existing {
		archives := []string{d.driverArchive()}
		for _, name := range names {
			archives = append(archives, d.operatorArchive(name, d.tags[name]))
		}
		if err := d.run(ctx, line, d.clusterCommand("load", archives...)); err != nil {
			return err
		}
	}
	if err := d.applyAnywhere(ctx, line, "operators", "-k", d.work("operators")); err != nil {
		return err
	}
	if err := d.apply(ctx, line, "namespace-operators", "-f", d.example("demo", "namespace.yaml")); err != nil {
		return err
	}
	if err := d.apply(ctx, line, "hand-over", "-k", filepath.Join(d.root, "config", "namespace")); err != nil {
		return err
	}
	return d.awaitOperators(ctx, line)
}

// awaitOperators waits until the ControlPlane's CRD and the operators are ready.
func (d *demo) awaitOperators(ctx context.Context, line *progress.Line) error {
	names, err := d.operators()
	if err != nil {
		return err
	}
	wanted := []object{{kind: definitionKind, name: "controlplanes." + group}}
	for _, name := range names {
		wanted = append(wanted, operatorDeployment(name))
	}
	return d.awaitAll(ctx, line, wanted...)
}

func operatorDeployment(name string) object {
	wanted := deployment("asterism-" + name + "-operator")
	wanted.namespace = systemNamespace
	if name == sharedVolume {
		wanted.namespace = storageNamespace
	}
	return wanted
}

// controlPlane returns the ControlPlane's file with the image of the run, and on an existing
// cluster without shared volumes, which need EFS.
func (d *demo) controlPlane() (path string, err error) {
	source := d.example("demo", "controlplane.yaml")
	if d.openStack() == defaultImage {
		return source, nil
	}
	content, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	o := &unstructured.Unstructured{}
	changed := strings.ReplaceAll(string(content), defaultImage, d.openStack())
	if err := yaml.Unmarshal([]byte(changed), &o.Object); err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	if d.existing {
		unstructured.RemoveNestedField(o.Object, "spec", "sharedVolumes")
	}
	if content, err = yaml.Marshal(o.Object); err != nil {
		return "", err
	}
	path = d.work("controlplane.yaml")
	return path, os.WriteFile(path, content, 0o644)
}

// deployNova applies the ControlPlane and shows its message until it is ready.
func (d *demo) deployNova(ctx context.Context, line *progress.Line) error {
	source, err := d.controlPlane()
	if err != nil {
		return err
	}
	if err := d.apply(ctx, line, "controlplane", "-f", source); err != nil {
		return err
	}
	return d.awaitAll(ctx, line, object{kind: controlPlaneKind, name: controlPlane})
}

// awaitCompute waits until the cell has mapped the host of its compute. Waiting for the cell
// has no timeout: the step of the ControlPlane, which runs at the same time, has one.
func (d *demo) awaitCompute(ctx context.Context, line *progress.Line) error {
	return d.kube.await(ctx, object{kind: novaCellKind, name: controlPlane + "-cell1", ready: hasHost}, line.Say)
}

// hasHost reports whether the cell has mapped a host, without which no server can be
// scheduled.
func hasHost(cell *unstructured.Unstructured) (ready bool, message string) {
	mapped, _, _ := unstructured.NestedInt64(cell.Object, "status", "hosts", "mapped")
	return mapped > 0, "no host is mapped yet"
}

const serverName = "demo"

// bootServer boots a server, unless that of an earlier run exists.
func (d *demo) bootServer(ctx context.Context, line *progress.Line) error {
	return d.run(ctx, line, d.bootCommand())
}

func (d *demo) bootCommand() command {
	return command{name: "server", env: d.kube.env, args: []string{d.example("demo", "boot-server"), serverName, namespace}}
}
