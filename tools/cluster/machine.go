package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"asterism.dev/tools/internal/mounts"
	"asterism.dev/tools/internal/process"
)

// bridge has the node's address. Pods are not attached to it, each has a route: across a
// bridge the replies of a Service's pods would bypass the address translation unless
// br_netfilter is loaded.
const bridge = "asterism0"

// machine records what the full mode changes outside the cluster's folder.
type machine struct {
	// Dir is the folder of the cluster that owns the node. A machine has at most one node.
	Dir string `json:"dir"`
	// Sysctls are the values to restore, by path below /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
	// Directories did not exist before; down removes those that are empty.
	Directories []string `json:"directories"`
}

const machineFile = runDir + "/machine.json"

// sysctls that the node changes: this tool sets the first, the kubelet the others.
var sysctls = []string{
	"net/ipv4/ip_forward",
	"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys",
	"kernel/panic", "kernel/panic_on_oops",
	"vm/overcommit_memory", "vm/panic_on_oom",
}

// sharedDirectories are created by CNI, containerd or the kubelet, and no setting moves
// them. A parent precedes its children.
var sharedDirectories = []string{
	kubeletDir,
	"/var/lib/cni", cniResults,
	"/var/log/containers",
	"/run/containerd", "/run/containerd/s",
}

// readMachine returns nil if no full cluster has recorded its changes.
func readMachine() (*machine, error) {
	content, err := os.ReadFile(machineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &machine{}
	if err := json.Unmarshal(content, m); err != nil {
		return nil, fmt.Errorf("%s: %w", machineFile, err)
	}
	return m, nil
}

// checkMachine refuses a machine on which the full mode cannot run, before any change.
func (c *cluster) checkMachine(ctx context.Context) error {
	missing := missingPackages()
	if os.Geteuid() != 0 {
		message := "the full cluster needs root for its containers: run this with sudo, or use --control-plane-only"
		if len(missing) > 0 {
			message += fmt.Sprintf("\nmissing: %s\n  sudo apt-get install -y --no-install-recommends %[1]s", strings.Join(missing, " "))
		}
		return errors.New(message)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(c.dir, &stat); err != nil {
		return fmt.Errorf("statfs %s: %w", c.dir, err)
	}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return fmt.Errorf("%s is on overlayfs, which cannot store containers: choose a --dir on a disk or volume", c.dir)
	}
	owner, err := readMachine()
	if err != nil {
		return err
	}
	if owner != nil && owner.Dir != c.dir {
		if err := c.takeOver(ctx, owner); err != nil {
			return err
		}
		owner = nil
	}
	if owner == nil {
		if err := checkSpace(c.dir, stat.Bavail*uint64(stat.Bsize)); err != nil {
			return err
		}
		if err := checkFree(); err != nil {
			return err
		}
	}
	return c.installPackages(ctx, missing)
}

// minFreeSpace is what the images, the volumes and the logs of a demo take, in bytes. With
// less, the kubelet evicts its pods after some minutes and taints the node, and
// nobody who sees an unschedulable pod thinks of the disk.
const minFreeSpace = 5 << 30

// checkSpace refuses a folder whose disk has fewer than minFreeSpace bytes free.
func checkSpace(dir string, free uint64) error {
	if free >= minFreeSpace {
		return nil
	}
	return fmt.Errorf("the disk of %s has %.1f GiB free, and the cluster needs %d GiB: remove files, or choose a --dir on another disk",
		dir, float64(free)/(1<<30), minFreeSpace>>30)
}

// takeOver removes the node of another cluster whose processes were all killed without
// `down`. That cluster's folder stays, for its own `up` or `down`.
func (c *cluster) takeOver(ctx context.Context, owner *machine) error {
	running, err := process.Of(owner.Dir)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return fmt.Errorf("this machine already runs the full cluster in %s: remove it first with: cluster --dir %[1]s down", owner.Dir)
	}
	c.progress.Say("the cluster in %s has a node and no running process: removing its node", owner.Dir)
	if err := killAll(ctx, owner.Dir, true); err != nil {
		return err
	}
	return owner.undo(ctx)
}

// checkFree refuses a machine that has another kubelet, or an address inside the cluster's ranges.
func checkFree() error {
	entries, err := os.ReadDir(kubeletDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 || len(podCgroups()) > 0 {
		return fmt.Errorf("this machine is or was a node of another Kubernetes (%s is not empty, or there is a cgroup kubepods): "+
			"use that cluster, or --control-plane-only", kubeletDir)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, address := range addresses {
		used, err := netip.ParsePrefix(address.String())
		if err != nil {
			continue
		}
		for _, cidr := range []string{podCIDR, serviceCIDR} {
			if netip.MustParsePrefix(cidr).Overlaps(used) {
				return fmt.Errorf("this machine has the address %s, inside the cluster's range %s: use --control-plane-only", used, cidr)
			}
		}
	}
	return nil
}

// prepareMachine sets up the node's address, its forwarding and the kubelet's folder.
func (c *cluster) prepareMachine(ctx context.Context) error {
	if err := recordMachine(c.dir); err != nil {
		return err
	}
	if err := setSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(bridge); err != nil {
		if err := runCommand(ctx, "ip", "link", "add", bridge, "type", "bridge"); err != nil {
			return err
		}
	}
	if err := runCommand(ctx, "ip", "address", "replace", nodeCIDR, "dev", bridge); err != nil {
		return err
	}
	if err := runCommand(ctx, "ip", "link", "set", bridge, "up"); err != nil {
		return err
	}
	if err := setFirewall(ctx); err != nil {
		return err
	}
	return mountKubelet(c.node(kubeletName))
}

// recordMachine records the machine's settings before the first change.
func recordMachine(dir string) error {
	m, err := readMachine()
	if err == nil && m != nil && m.Dir != dir {
		err = fmt.Errorf("the cluster in %s has become the node of this machine meanwhile", m.Dir)
	}
	if err != nil || m != nil {
		return err
	}
	m = &machine{Dir: dir, Sysctls: map[string]string{}}
	for _, name := range sysctls {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return err
		}
		m.Sysctls[name] = strings.TrimSpace(string(value))
	}
	for _, path := range sharedDirectories {
		if !exists(path) {
			m.Directories = append(m.Directories, path)
		}
	}
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(machineFile, append(content, '\n'), 0o644)
}

// setSysctl does not write a value that is already set: writing ip_forward resets the
// setting of every interface.
func setSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(now)) == value {
		return nil
	}
	return os.WriteFile(path, []byte(value), 0o644)
}

// mountKubelet mounts the cluster's folder at the kubelet's usual path. Mounts below that
// path propagate to containers that request this, but not to the folder itself, so
// removing the folder never deletes files of a volume.
func mountKubelet(source string) error {
	points, err := mounts.Below(kubeletDir)
	if err != nil || len(points) > 0 {
		return err
	}
	for _, dir := range []string{source, kubeletDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(source, kubeletDir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, kubeletDir, err)
	}
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", kubeletDir, "", propagation, ""); err != nil {
			return fmt.Errorf("set mount propagation of %s: %w", kubeletDir, err)
		}
	}
	return nil
}

// podCgroups lists the kubelet's cgroup of pods, one for each hierarchy of cgroup v1.
func podCgroups() []string {
	found, _ := filepath.Glob("/sys/fs/cgroup/kubepods")
	ofV1, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	return append(found, ofV1...)
}
