package main

import (
	"context"
	"embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"asterism.dev/tools/internal/process"
)

// Fixed paths that the node needs besides the cluster's folder.
const (
	// runDir contains sockets, whose paths must be short, and files that a reboot may delete.
	runDir           = "/run/asterism"
	containerdSocket = runDir + "/containerd.sock"
	// kubeletDir is the path at which CSI drivers and device plugins expect the kubelet's
	// folder. A folder of the cluster is mounted on it.
	kubeletDir = "/var/lib/kubelet"
	// cniPlugins is the folder of Debian's package containernetworking-plugins.
	cniPlugins  = "/usr/lib/cni"
	cniResults  = "/var/lib/cni/results"
	networkName = "asterism" // as in asterism.conflist
	pauseImage  = "asterism.local/pause:1"
)

//go:embed manifests/node/*
var nodeFiles embed.FS

func (c *cluster) node(file string) string { return filepath.Join(c.dir, "node", file) }

// writeNodeFiles renders the node's configuration files.
func (c *cluster) writeNodeFiles() error {
	values := map[string]any{
		"Dir": c.dir, "Pki": c.pki(""), "Node": c.node(""), "RunDir": runDir,
		"Socket": containerdSocket, "Plugins": cniPlugins, "Pause": pauseImage,
		"NodeIP": nodeIP, "PodCIDR": podCIDR, "Domain": domain, "Ports": c.state.Ports,
		"NodeName": nodeName, "Volumes": volumes(),
		"CgroupV1": !exists("/sys/fs/cgroup/cgroup.controllers"),
	}
	templates, err := template.ParseFS(nodeFiles, "manifests/node/*")
	if err != nil {
		return err
	}
	for _, t := range templates.Templates() {
		content, err := render(t, values)
		if err != nil {
			return err
		}
		target := c.node(t.Name())
		if strings.HasSuffix(target, ".conflist") {
			target = c.node("cni/" + t.Name()) // containerd reads every file of that folder
		}
		if err := writeFile(target, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// volumes returns the names of the node's PersistentVolumes.
func volumes() []string {
	names := make([]string, 32)
	for i := range names {
		names[i] = fmt.Sprintf("volume-%d", i)
	}
	return names
}

// createVolumes creates the PersistentVolumes and their folders, writable for every user.
func (c *cluster) createVolumes(ctx context.Context) error {
	for _, name := range volumes() {
		folder := filepath.Join(c.dir, "volumes", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(folder, 0o777); err != nil {
			return err
		}
	}
	return c.apply(ctx, "volumes.yaml")
}

// apply applies one of the node's files to the API.
func (c *cluster) apply(ctx context.Context, file string) error {
	return runCommand(ctx, "env", "NO_PROXY="+nodeIP, "no_proxy="+nodeIP, c.binary("kubectl"), "--kubeconfig="+filepath.Join(c.dir, "kubeconfig"),
		"apply", "-f", c.node(file))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *cluster) containerd() component {
	return component{
		name:  containerdName,
		args:  []string{commandPath(containerdName), "--config=" + c.node("containerd.toml")},
		files: []string{c.node("containerd.toml")},
		healthy: func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "unix", containerdSocket)
			if err != nil {
				return err
			}
			return connection.Close()
		},
	}
}

func (c *cluster) kubeScheduler() component {
	files := []string{c.pki("kube-scheduler.kubeconfig")}
	return component{name: schedulerName, files: files, healthy: c.get(c.url(schedulerName) + "/healthz"), args: []string{
		c.binary(schedulerName),
		"--kubeconfig=" + c.pki("kube-scheduler.kubeconfig"),
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", c.state.Ports[schedulerName]),
		"--tls-cert-file=" + c.pki("server.crt"), "--tls-private-key-file=" + c.pki("server.key"),
		"--leader-elect=false",
	}}
}

func (c *cluster) kubelet() component {
	files := []string{c.node("kubelet.yaml"), c.pki("kubelet.kubeconfig")}
	return component{name: kubeletName, files: files, before: c.prepareKubelet, healthy: c.plain(kubeletName, "/healthz"), args: []string{
		c.binary(kubeletName),
		"--config=" + c.node("kubelet.yaml"),
		"--kubeconfig=" + c.pki("kubelet.kubeconfig"),
		"--root-dir=" + kubeletDir,
		"--hostname-override=" + nodeName,
		"--node-ip=" + nodeIP,
		"--housekeeping-interval=1m", // nobody reads the usage of containers
	}}
}

func (c *cluster) kubeProxy() component {
	files := []string{c.pki("kube-proxy.kubeconfig")}
	return component{name: proxyName, files: files, healthy: c.plain(proxyName, "/livez"), args: []string{
		c.binary(proxyName),
		"--kubeconfig=" + c.pki("kube-proxy.kubeconfig"),
		"--hostname-override=" + nodeName,
		"--proxy-mode=nftables",
		"--cluster-cidr=" + podCIDR,
		fmt.Sprintf("--healthz-bind-address=%s:%d", loopback, c.state.Ports[proxyName]),
		fmt.Sprintf("--metrics-bind-address=%s:%d", loopback, c.state.Ports["kube-proxy-metrics"]),
		// Do not change the machine's connection tracking.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
	}}
}

// coreDNS runs on the node itself: pods query the node's address, without image or Service.
func (c *cluster) coreDNS() component {
	files := []string{c.node("Corefile"), c.pki("coredns.kubeconfig")}
	return component{name: coreDNSName, files: files, before: c.allowCoreDNS, healthy: c.plain(coreDNSName, "/ready"), args: []string{
		c.binary(coreDNSName), "-conf", c.node("Corefile"),
	}}
}

func (c *cluster) allowCoreDNS(ctx context.Context) error { return c.apply(ctx, "coredns-rbac.yaml") }

func (c *cluster) prepareKubelet(ctx context.Context) error {
	if err := c.createVolumes(ctx); err != nil {
		return err
	}
	return c.loadPause(ctx)
}

// loadPause builds and imports the image of every pod's sandbox.
func (c *cluster) loadPause(ctx context.Context) error {
	archive := c.node("pause.tar")
	if err := writePauseImage(archive, pauseImage, c.binary("pause")); err != nil {
		return fmt.Errorf("make image %s: %w", pauseImage, err)
	}
	return c.load(ctx, []string{archive})
}

// settleNode waits until the node is Ready.
func (c *cluster) settleNode(ctx context.Context) error {
	check := func() error {
		var node struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err := c.read(ctx, c.apiURL()+"/api/v1/nodes/"+nodeName, &node); err != nil {
			return err
		}
		message := "no condition yet"
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return nil
			}
			if condition.Type == "Ready" {
				message = condition.Message
			}
		}
		return fmt.Errorf("the node is not ready: %s", message)
	}
	if err := process.Poll(ctx, pollInterval, check); err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, c.logTail(kubeletName), c.logTail(containerdName))
	}
	return nil
}
