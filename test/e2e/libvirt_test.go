package e2e

import (
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// libvirtControlPlane has one cell, with one node and with consoles.
const libvirtControlPlane = `
apiVersion: asterism.dev/v1alpha1
kind: ControlPlane
metadata: {name: real}
spec:
  containerImage: asterism.dev/demo/openstack:trixie
  database: {serviceRef: {name: mariadb}, adminSecretRef: {name: mariadb-admin}}
  messageBus: {serviceRef: {name: rabbitmq}, adminSecretRef: {name: rabbitmq-default-user}}
  identity: {adminSecretRef: {name: keystone-admin}}
  nova:
    api: {workers: 1}
    metadata: {replicas: 0}
    cells:
    - name: cell1
      noVNCProxy: {exposure: {type: None}}
      computes:
      - name: rack1
        driver: Libvirt
        libvirt: {nodeSelector: {e2e.asterism.dev/servers: libvirt}, virtType: QEMU}
        containerImage: asterism.dev/demo/openstack:trixie-libvirt
`

// libvirtSpecs run instances in QEMU on this machine, as the last specs that need the compute of
// its node. The machine emulates their processor.
func libvirtSpecs() {
	const (
		namespace = libvirtNamespace
		compute   = "real-cell1-rack1"
		pressed   = "guest: the power button was pressed"
	)
	var server, booted, node string

	BeforeAll(func(ctx SpecContext) {
		deployExample(ctx, namespace, "demo-persistent")
		loadImages(ctx, "variants")
		apply(ctx, namespace, kubectl(ctx, "kustomize", kustomization("namespace: "+namespace+"\nresources: ["+repository("examples", "demo-services")+"]\n")))
		prepareRunOnHost(ctx, namespace)
		kubectl(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
		handOver(ctx, namespace, sharedOperators)
		state := repository(".demo", "libvirt", "libvirt") // make demo-down ends what a killed run has left there
		machine := repository("examples", "demo-libvirt", "node")
		_, err := run(ctx, "", machine, "up", state)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "controlplane/real", "--namespace="+namespace, "--ignore-not-found")
			awaitGone(ctx, "NovaNoVNCProxy", namespace, "real-cell1-novncproxy") // its pods wait for the end of consoles
			kubectl(ctx, "delete", "pods", "--namespace="+namespace, "--selector=app.kubernetes.io/name=nova-novncproxy", "--grace-period=0", "--force", "--ignore-not-found")
			_, err := run(ctx, "", machine, "down", state)
			Expect(err).NotTo(HaveOccurred())
		})
		kubectl(ctx, "label", "nodes", "--all", "e2e.asterism.dev/servers=libvirt", "--overwrite")
		node = kubectl(ctx, "get", "nodes", "--output=jsonpath={.items[0].metadata.name}")
		apply(ctx, namespace, libvirtControlPlane)
		kubectl(ctx, "wait", "deployment/glance", "deployment/openstackclient", "--namespace="+namespace, "--for=condition=Available", "--timeout=10m")
		uploadGuest(ctx, namespace)
		awaitReady(ctx, "ControlPlane", namespace, "real")
		// The cell does not know how many nodes have the label, and so is ready without their hosts.
		kubectl(ctx, "wait", "novacell/real-cell1", "--namespace="+namespace, "--for=jsonpath={.status.hosts.mapped}=1", "--timeout=10m")
	})

	It("boots an instance, whose guest writes to its console log", func(ctx SpecContext) {
		osc(ctx, "flavor", "create", "guest", "--ram=128", "--vcpus=1", "--disk=0")
		server = strings.TrimSpace(osc(ctx, "server", "create", "real", "--image=guest", "--flavor=guest",
			"--nic=none", "--config-drive=true", "--os-compute-api-version=2.37", "--column=id", "--format=value"))
		booted = "guest: booted as server " + server
		awaitServer(ctx, "ACTIVE")
		awaitConsole(ctx, namespace, booted)
		Expect(osc(ctx, "server", "show", "real", "--column=OS-EXT-SRV-ATTR:host", "--format=value")).To(Equal(node + "\n"))
	}, SpecTimeout(15*time.Minute))

	It("shows the screen that the guest has painted, through the proxy", func(ctx SpecContext) {
		screen := screenOf(ctx, namespace)
		Expect(shareOf(screen, color.RGBA{B: 0xa8, A: 0xff})).To(BeNumerically(">", 0.9), "the guest's blue")
		Expect(shareOf(screen, color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff})).To(BeNumerically(">", 0.001), "the guest's line")
	}, SpecTimeout(10*time.Minute))

	It("runs on while the pod of the compute is replaced", func(ctx SpecContext) {
		process := serverProcess()
		kubectl(ctx, "rollout", "restart", "daemonset/"+compute, "--namespace="+namespace)
		kubectl(ctx, "rollout", "status", "daemonset/"+compute, "--namespace="+namespace, "--timeout=10m")
		Expect(serverProcess()).To(Equal(process))
		awaitServer(ctx, "ACTIVE")
		Expect(strings.Count(consoleOf(ctx, namespace), booted)).To(Equal(1))
		screenOf(ctx, namespace)
	}, SpecTimeout(15*time.Minute))

	It("stops by its power button, starts and is rebooted", func(ctx SpecContext) {
		process := serverProcess()
		osc(ctx, "server", "stop", "real")
		awaitServer(ctx, "SHUTOFF")
		log, err := os.ReadFile(filepath.Join("/var/lib/nova/instances", server, "console.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).To(ContainSubstring(pressed), "this machine is the node, where Nova keeps the log of a stopped instance")
		osc(ctx, "server", "start", "real")
		awaitConsole(ctx, namespace, booted)
		Expect(serverProcess()).NotTo(Equal(process))
		process = serverProcess()
		osc(ctx, "server", "reboot", "--hard", "real")
		Eventually(func() string { return serverProcess() }).WithContext(ctx).ShouldNot(Or(BeEmpty(), Equal(process)))
		awaitConsole(ctx, namespace, booted)
		awaitServer(ctx, "ACTIVE")
	}, SpecTimeout(15*time.Minute))

	It("keeps its compute, which is removed without it", func(ctx SpecContext) {
		kubectl(ctx, "patch", "controlplane/real", "--namespace="+namespace, "--type=json",
			`--patch=[{"op": "add", "path": "/spec/nova/cells/0/computes/0/state", "value": "Retired"}]`)
		awaitWithin(ctx, patience, "NovaCompute", namespace, compute, func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(conditionOf(o, "Ready").message).To(ContainSubstring("servers on host " + node + ": 1, for example " + server))
		})
		Expect(serverProcess()).NotTo(BeEmpty())
		osc(ctx, "server", "delete", "real")
		awaitGone(ctx, "NovaCompute", namespace, compute)
		Expect(serverProcess()).To(BeEmpty())
		Expect(filepath.Join("/var/lib/nova/instances", server)).NotTo(BeADirectory())
		Expect(query(ctx, namespace, "SELECT host FROM real_api.host_mappings")).To(BeEmpty())
		Expect(query(ctx, namespace, "SELECT name FROM placement.resource_providers")).To(BeEmpty(), "neither of the node nor of its kernel's host name")
	}, SpecTimeout(15*time.Minute))
}

// oscArguments are the arguments of kubectl for a command of the OpenStack client.
func oscArguments(namespace string, command ...string) []string {
	return append([]string{"exec", "--stdin", "--namespace=" + namespace, "deployment/openstackclient", "--", "openstack"}, command...)
}

// osc runs a command of the OpenStack client, and returns its output.
func osc(ctx context.Context, command ...string) string {
	GinkgoHelper()
	return oscIn(ctx, libvirtNamespace, command...)
}

// oscIn is osc for the cloud of any namespace.
func oscIn(ctx context.Context, namespace string, command ...string) string {
	GinkgoHelper()
	out, err := run(ctx, "", "kubectl", oscArguments(namespace, command...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// uploadGuest makes the image of a guest that boots.
func uploadGuest(ctx context.Context, namespace string) {
	GinkgoHelper()
	_, err := run(ctx, "", repository("examples", "demo-libvirt", "upload"), repository(".demo", "libvirt", "guest"), namespace)
	Expect(err).NotTo(HaveOccurred())
}

func awaitServer(ctx context.Context, status string) {
	GinkgoHelper()
	Eventually(func() string {
		return osc(ctx, "server", "show", "real", "--column=status", "--format=value")
	}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(Equal(status+"\n"), func() string { return explain(libvirtNamespace) })
}

// consoleOf returns the console log of the server, "" while Nova has none.
func consoleOf(ctx context.Context, namespace string) string {
	out, _ := run(ctx, "", "kubectl", oscArguments(namespace, "console", "log", "show", "real")...)
	return out
}

func awaitConsole(ctx context.Context, namespace, line string) {
	GinkgoHelper()
	Eventually(func() string { return consoleOf(ctx, namespace) }).
		WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(ContainSubstring(line))
}

// screenOf returns the screen of the server. The picture stays in the demo's folder.
func screenOf(ctx context.Context, namespace string) image.Image {
	GinkgoHelper()
	script, err := os.ReadFile(repository("examples", "demo-libvirt", "screen.py"))
	Expect(err).NotTo(HaveOccurred())
	content, err := run(ctx, string(script), "kubectl", "exec", "--stdin", "--namespace="+namespace, "deployment/openstackclient", "--", "python3", "-", "real")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(repository(".demo", "screen.png"), []byte(content), 0o600)).To(Succeed())
	screen, err := png.Decode(strings.NewReader(content))
	Expect(err).NotTo(HaveOccurred())
	return screen
}

// shareOf returns the share of the pixels that have a color.
func shareOf(screen image.Image, wanted color.RGBA) float64 {
	size, found := screen.Bounds(), 0
	for y := range size.Dy() {
		for x := range size.Dx() {
			if color.RGBAModel.Convert(screen.At(x, y)) == wanted {
				found++
			}
		}
	}
	return float64(found) / float64(size.Dx()*size.Dy())
}

// serverProcess returns the ID of the process of QEMU that runs the first instance of the cell, ""
// for none. libvirt calls it by Nova's template of names.
func serverProcess() string {
	content, _ := os.ReadFile("/run/libvirt/qemu/instance-00000001.pid")
	return string(content)
}
