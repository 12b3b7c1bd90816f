package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"asterism.dev/tools/internal/mounts"
)

// killPods kills every process in a pod's cgroup and returns their number.
func killPods() (int, error) {
	killed := 0
	for _, root := range podCgroups() {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || (err == nil && entry.Name() != "cgroup.procs") {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return nil // the cgroup was just removed
			}
			for line := range strings.FieldsSeq(string(content)) {
				pid, err := strconv.Atoi(line)
				if err != nil || pid == 0 {
					continue
				}
				killed++
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
					return fmt.Errorf("kill pid %d of %s: %w", pid, path, err)
				}
			}
			return nil
		})
		if err != nil {
			return killed, err
		}
	}
	return killed, nil
}

// undo restores the machine's settings, once no process of the cluster runs.
func (m *machine) undo(ctx context.Context) error {
	if err := unmountAll(runDir, kubeletDir, m.Dir); err != nil {
		return err
	}
	if err := removeNetwork(ctx); err != nil {
		return err
	}
	for name, value := range m.Sysctls {
		if err := setSysctl(name, value); err != nil {
			return err
		}
	}
	for _, root := range podCgroups() {
		if err := removeCgroup(root); err != nil {
			return err
		}
	}
	if err := m.removeFiles(ctx); err != nil {
		return err
	}
	return removeFolder(runDir, filepath.Base(machineFile))
}

// unmountAll fails if a mount is left: removing the folder would delete the files in it.
func unmountAll(folders ...string) error {
	points, err := mounts.Below(folders...)
	if err != nil {
		return err
	}
	for _, point := range slices.Backward(points) {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	left, err := mounts.Below(folders...)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("still mounted: %s", strings.Join(left, ", "))
	}
	return err
}

// removeNetwork deletes the devices with the node's address, pods' included, kube-proxy's
// tables and the firewall rules.
func removeNetwork(ctx context.Context) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, device := range interfaces {
		addresses, err := device.Addrs()
		if err != nil {
			continue
		}
		hasAddress := slices.ContainsFunc(addresses, func(a net.Addr) bool { return a.String() == nodeCIDR })
		if !hasAddress && device.Name != bridge {
			continue
		}
		err = runCommand(ctx, "ip", "link", "delete", device.Name)
		if _, gone := net.InterfaceByName(device.Name); err != nil && gone == nil {
			return err
		}
	}
	for _, family := range []string{"ip", "ip6"} {
		if err := deleteTable(ctx, family, proxyName); err != nil {
			return err
		}
	}
	return removeFirewall(ctx)
}

// removeCgroup removes a tree of empty cgroups, leaves first.
func removeCgroup(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil {
			return err
		}
	}
	return nil
}

// deadShimSockets lists the sockets without a listener, left by killed shims in a folder
// that all instances of containerd share.
func deadShimSockets(ctx context.Context) []string {
	sockets, _ := filepath.Glob("/run/containerd/s/*")
	dialer := net.Dialer{}
	return slices.DeleteFunc(sockets, func(path string) bool {
		connection, err := dialer.DialContext(ctx, "unix", path)
		if err == nil {
			_ = connection.Close()
		}
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
}

// networkResults lists the files that CNI stores for each pod until its regular removal:
// NETWORK-SANDBOX-INTERFACE of the cluster's network and of the same sandbox's loopback.
func networkResults() []string {
	var results []string
	own, _ := filepath.Glob(filepath.Join(cniResults, networkName+"-*-*"))
	for _, path := range own {
		sandbox := strings.Split(strings.TrimPrefix(filepath.Base(path), networkName+"-"), "-")[0]
		found, _ := filepath.Glob(filepath.Join(cniResults, "*-"+sandbox+"-*"))
		results = append(results, found...)
	}
	return results
}

// removeFiles removes the cluster's files in folders that other programs may use too.
func (m *machine) removeFiles(ctx context.Context) error {
	files := append(deadShimSockets(ctx), networkResults()...)
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, m.Dir+"/") {
			files = append(files, link)
		}
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, dir := range slices.Backward(m.Directories) {
		_ = os.Remove(dir) // fails if another program has put files into it
	}
	return nil
}
