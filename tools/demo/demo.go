package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"asterism.dev/tools/internal/checkout"
	"asterism.dev/tools/internal/cpu"
	"asterism.dev/tools/internal/progress"
)

const (
	namespace = "openstack"
	// systemNamespace and storageNamespace are the operators' namespaces, as in
	// config/control-plane and config/shared-volume.
	systemNamespace  = "asterism-system"
	storageNamespace = "asterism-storage"
	controlPlane     = "demo"
	// fieldManager owns the fields that the demo applies.
	fieldManager = "asterism-demo"
)

// demo is one run, with its folders and its cluster.
type demo struct {
	root      string            // of the repository
	dir       string            // of the embedded cluster's state
	existing  bool              // the cluster of KUBECONFIG is used
	installed bool              // the operators run on this cluster, installed by other means
	registry  string            // prefix of every image's name; "" on the embedded cluster
	release   string            // of Debian, whose packages are in the OpenStack image
	libvirt   bool              // an instance boots in QEMU on this machine
	timeout   time.Duration     // for each wait on the cluster
	env       []string          // of the programs that the demo runs
	kube      *kube             // set once the cluster is up
	tags      map[string]string // of the operators' images, by operator; set once they are built
	driver    string            // tag of the images of the EFS CSI driver; set once they are built
}

func newDemo(dir string, timeout time.Duration) (*demo, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = filepath.Join(root, ".cluster")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	d := &demo{
		root: root, dir: dir, timeout: timeout, env: os.Environ(),
		registry: os.Getenv("IMAGE_REGISTRY"), release: cmp.Or(os.Getenv("RELEASE"), defaultRelease),
		libvirt: os.Getenv("LIBVIRT") != "",
	}
	if !slices.Contains(demoReleases, d.release) {
		return nil, fmt.Errorf("RELEASE=%s is invalid: set it to one of %s, whose packages have all that the demo needs", d.release, strings.Join(demoReleases, ", "))
	}
	switch cluster := os.Getenv("CLUSTER"); cluster {
	case "", "embedded":
		d.registry = ""
	case "existing":
		d.existing = true
		if d.libvirt {
			return nil, errors.New("LIBVIRT needs the cluster on this machine, which is then the node of the compute: unset LIBVIRT or CLUSTER")
		}
	default:
		return nil, fmt.Errorf("CLUSTER=%s is invalid: set it to existing (the cluster of KUBECONFIG), or unset it (a cluster is booted on this machine)", cluster)
	}
	switch operators := os.Getenv("OPERATORS"); {
	case operators == "":
	case operators == "installed" && d.existing:
		d.installed = true
	default:
		return nil, fmt.Errorf("OPERATORS=%s is invalid: set it to installed (operators on a cluster with CLUSTER=existing, installed by OLM or Helm), or unset it (the demo deploys the operators)", operators)
	}
	return d, nil
}

// up runs every step and shows the result.
func (d *demo) up(ctx context.Context) error {
	if err := d.checkRequirements(); err != nil {
		return err
	}
	if err := d.makeWorkFolder(); err != nil {
		return err
	}
	clusters, steps := cpu.Observe(), d.steps()
	shown := progress.New(os.Stdout, len(steps))
	if err := runSteps(ctx, shown, steps); err != nil {
		return fmt.Errorf("\n%w", d.explain(ctx, err))
	}
	if err := writeCosts(os.Stdout, shown, clusters); err != nil {
		return err
	}
	return d.report(ctx, os.Stdout, shown.Elapsed())
}

// checkRequirements reports missing requirements before the first step.
func (d *demo) checkRequirements() error {
	if d.existing {
		if d.registry == "" {
			return errors.New("CLUSTER=existing needs IMAGE_REGISTRY=HOST/PATH: a registry that the cluster's nodes pull from, and that you may push to.\n" +
				"The demo pushes the operators' images and the OpenStack image that the registry lacks")
		}
		if _, err := exec.LookPath("kubectl"); err != nil {
			return errors.New("CLUSTER=existing needs kubectl on PATH, and KUBECONFIG for the cluster")
		}
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("the demo boots a Kubernetes node on this machine and builds an image with mmdebstrap: both need root.\n" +
			"Type one of these:\n\n" +
			"  sudo -E env PATH=\"$PATH\" make demo                    # a cluster on this machine, removed by make demo-down\n" +
			"  make demo CLUSTER=existing IMAGE_REGISTRY=HOST/PATH   # the cluster of KUBECONFIG; without root if that registry has the OpenStack image")
	}
	return nil
}

// work returns a path in the folder for the demo's binaries, images and logs.
func (d *demo) work(parts ...string) string {
	return filepath.Join(append([]string{d.root, ".demo"}, parts...)...)
}

func (d *demo) makeWorkFolder() error {
	for _, folder := range []string{"bin", "images", "logs", "operators"} {
		if err := os.MkdirAll(d.work(folder), 0o755); err != nil {
			return err
		}
	}
	// Git ignores the folder.
	return os.WriteFile(d.work(".gitignore"), []byte("*\n"), 0o644)
}
