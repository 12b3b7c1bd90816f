package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/kolla"
)

// The suite runs on the node of its cluster, and can place programs there.
var _ = Describe("A pod that runs programs of its node", Ordered, SpecPriority(2), func() {
	const (
		namespace = "run-on-host"
		scripts   = "scripts" // volume and ConfigMap
		directory = "/usr/local/bin/container-scripts"
		onHost    = "daemonset/on-host"
	)
	template := func(option bool) *applycorev1.PodTemplateSpecApplyConfiguration {
		template := applycorev1.PodTemplateSpec().WithLabels(map[string]string{"app": "e2e"}).WithSpec(applycorev1.PodSpec().
			WithTerminationGracePeriodSeconds(1).
			WithSecurityContext(applycorev1.PodSecurityContext().WithRunAsNonRoot(true).
				WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
			WithVolumes(applycorev1.Volume().WithName(scripts).
				WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(scripts).WithDefaultMode(0o555))).
			WithContainers(applycorev1.Container().WithName("main").WithImage(openStack).WithImagePullPolicy(corev1.PullIfNotPresent).
				WithCommand("sleep", "infinity").WithWorkingDir("/tmp").
				WithSecurityContext(applycorev1.SecurityContext().WithAllowPrivilegeEscalation(false).
					WithCapabilities(applycorev1.Capabilities().WithDrop("ALL"))).
				WithVolumeMounts(applycorev1.VolumeMount().WithName(scripts).WithMountPath(directory))))
		if option {
			kolla.RunOnHost(template, scripts, directory)
			template.Spec.WithNodeSelector(map[string]string{serversLabel: "on-host"})
			template.Spec.Containers[0].SecurityContext.WithRunAsUser(0) // as the rootwrap of Nova
			template.Spec.Containers[0].WithEnv(applycorev1.EnvVar().WithName("PYTHONPATH").WithValue("/of/the/container"))
		}
		return template
	}
	pod := func(name string, option bool) string {
		template := template(option)
		content, err := json.Marshal(applycorev1.Pod(name, namespace).WithAnnotations(template.Annotations).WithSpec(template.Spec))
		Expect(err).NotTo(HaveOccurred())
		return string(content)
	}
	placed := map[string]string{} // programs of the node

	BeforeAll(func(ctx SpecContext) {
		for _, name := range []string{"iscsiadm", "multipath"} {
			placed[name] = placeOnNode(name)
		}
		makeNamespace(ctx, namespace)
		files, err := kolla.Scripts([]string{"sleep", "infinity"})
		Expect(err).NotTo(HaveOccurred())
		files["run-on-host"] = aimed(files["run-on-host"])
		content, err := json.Marshal(applycorev1.ConfigMap(scripts, namespace).WithData(files))
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, namespace, string(content))
		prepareRunOnHost(ctx, namespace)
		handOver(ctx, namespace, sharedOperators)
		shareMounts(ctx, "/var/lib/nova")
		setSecret(ctx, namespace, "compute-config", secret(ctx, demoNamespace, "demo-cell1-compute-config"))
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "label", "nodes", "--all", serversLabel+"-") })
	})

	It("is refused in a namespace that an administrator has not labelled", func(ctx SpecContext) {
		Expect(tryApply(ctx, namespace, pod("on-host", true))).To(MatchError(And(
			ContainSubstring(`violates PodSecurity "restricted:latest"`), ContainSubstring("hostPID=true"), ContainSubstring("privileged=true"))))
		apply(ctx, namespace, libvirtCompute)
		awaitFalse(ctx, object("NovaCompute", namespace, "rack1"), "InputsReady", "Waiting", "has the label pod-security.kubernetes.io/enforce=restricted")
		kubectl(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce-")
		awaitFalse(ctx, object("NovaCompute", namespace, "rack1"), "InputsReady", "Waiting", "has no label pod-security.kubernetes.io/enforce")
		Expect(kubectl(ctx, "get", "daemonsets", "--namespace="+namespace, "--output=name")).To(BeEmpty())
		kubectl(ctx, "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
	})

	It("is refused to everybody but the DaemonSets of the operator", func(ctx SpecContext) {
		Expect(tryApply(ctx, namespace, pod("on-host", true))).To(MatchError(ContainSubstring("only DaemonSets of the nova-compute operator have pods that control their node")))
	})

	It("runs iscsiadm and multipath of the node, in the namespaces of the node", func(ctx SpecContext) {
		kubectl(ctx, "label", "nodes", "--all", serversLabel+"=on-host")
		content, err := json.Marshal(applyappsv1.DaemonSet("on-host", namespace).WithSpec(applyappsv1.DaemonSetSpec().
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{"app": "e2e"})).WithTemplate(template(true))))
		Expect(err).NotTo(HaveOccurred())
		_, err = run(ctx, string(content), "kubectl", "create", "--as=system:serviceaccount:"+sharedOperators+":asterism-nova-compute-operator", "--filename=-")
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "rollout", "status", onHost, "--namespace="+namespace, "--timeout=10m")
		inside, err := execIn(ctx, namespace, onHost, "readlink", "/proc/self/ns/mnt")
		Expect(err).NotTo(HaveOccurred())
		Expect(inside).NotTo(ContainSubstring(namespaceOf("mnt")), "the container has mounts of its own")
		for name, path := range placed {
			out, err := execIn(ctx, namespace, onHost, name, "-m", "a b")
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Split(strings.TrimSpace(out), "\n")).To(Equal([]string{
				path + " of the node, with 2 arguments: -m|a b", "in /",
				namespaceOf("mnt"), namespaceOf("net"), namespaceOf("ipc"), namespaceOf("uts"),
				"PYTHONPATH is ", "LC_ALL is C",
			}), name)
		}
		out, err := run(ctx, "through a pipe", "kubectl", "exec", "-i", "--namespace="+namespace, onHost, "--", "iscsiadm", "-")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HaveSuffix("LC_ALL is C\nthrough a pipe"), "the standard input is that of the caller")
		_, err = execIn(ctx, namespace, onHost, "iscsiadm", "fail")
		Expect(err).To(MatchError(ContainSubstring("exit code 21")), "the exit code is that of the node's program")
		kubectl(ctx, "delete", onHost, "--namespace="+namespace)
	})

	It("checks its node before it starts a compute with driver Libvirt", func(ctx SpecContext) {
		apply(ctx, namespace, libvirtCompute)
		compute := object("NovaCompute", namespace, "rack1")
		var nodes corev1.NodeList
		Expect(k8s.List(ctx, &nodes)).To(Succeed())
		awaitFalse(ctx, compute, "WorkloadReady", "Waiting", "no node has the labels e2e.asterism.dev/servers=rack1")
		kubectl(ctx, "label", "nodes", "--all", serversLabel+"=rack1", "--overwrite")
		awaitFalse(ctx, compute, "WorkloadReady", "Progressing",
			"the node "+nodes.Items[0].Name+" lacks ", "a socket of libvirt in /run/libvirt", "a directory /var/lib/nova that user", "the Python module libvirt of the image")
	}, SpecTimeout(12*time.Minute))

	It("runs one compute with driver Libvirt on a node", func(ctx SpecContext) {
		apply(ctx, namespace, strings.Replace(libvirtCompute, "{name: rack1}", "{name: rack2}", 1))
		awaitFalse(ctx, object("NovaCompute", namespace, "rack2"), "WorkloadReady", "Progressing", "free ports")
		kubectl(ctx, "delete", "novacompute/rack2", "--namespace="+namespace)
	}, SpecTimeout(12*time.Minute))

	It("removes a compute with driver Libvirt, and leaves nothing behind", func(ctx SpecContext) {
		kubectl(ctx, "delete", "novacompute/rack1", "--namespace="+namespace)
		Expect(events(ctx, namespace, "NovaCompute", "rack1")).NotTo(ContainElement(HavePrefix("LeftBehind")))
	}, SpecTimeout(12*time.Minute))

	It("without the option cannot reach the node", func(ctx SpecContext) {
		apply(ctx, namespace, pod("restricted", false))
		awaitRunning(ctx, namespace, "restricted")
		_, err := execIn(ctx, namespace, "restricted", "nsenter", "--target", "1", "--mount", "true")
		Expect(err).To(MatchError(MatchRegexp("Operation not permitted|Permission denied")))
		_, err = execIn(ctx, namespace, "restricted", directory+"/run-on-host")
		Expect(err).To(MatchError(ContainSubstring("run-on-host: ")))
		out, _ := execIn(ctx, namespace, "restricted", "iscsiadm", "--version")
		Expect(out).NotTo(ContainSubstring("of the node"))
	})

	Describe("An instance", libvirtSpecs)
})

// serversLabel is the label of the nodes that computes may control.
const serversLabel = "e2e.asterism.dev/servers"

// prepareRunOnHost does what an administrator does before the namespace admits privileged pods.
// Only the suite's nova-compute operator may then create them.
func prepareRunOnHost(ctx context.Context, namespace string) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--namespace="+namespace, "-k", repository("config", "run-on-host"))
	kubectl(ctx, "annotate", "namespace", namespace, "asterism.dev/run-on-host-node-label="+serversLabel, "asterism.dev/run-on-host-images="+openStackName+":",
		"asterism.dev/run-on-host-operator="+sharedOperators+"/asterism-nova-compute-operator")
	kubectl(ctx, "label", "namespace", namespace, "asterism.dev/run-on-host=restricted")
}

// libvirtCompute needs a libvirt, which the node of the tests does not have before libvirtSpecs.
const libvirtCompute = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaCompute
metadata: {name: rack1}
spec:
  driver: Libvirt
  libvirt: {nodeSelector: {e2e.asterism.dev/servers: rack1}, virtType: QEMU}
  containerImage: asterism.dev/demo/openstack:trixie
  computeConfigSecretRef: {name: compute-config}
`

// ofNode is a program that tells where it runs.
const ofNode = `#!/bin/sh
echo "$0 of the node, with $# arguments: $1|$2"
echo "in $(pwd)"
for kind in mnt net ipc uts; do readlink /proc/self/ns/$kind; done
echo "PYTHONPATH is $PYTHONPATH"
echo "LC_ALL is $LC_ALL"
[ "$1" != - ] || cat
[ "$1" != fail ] || exit 21
`

// placeOnNode creates a program in the first directory in which run-on-host looks for
// programs, for the time of the test, and returns its path.
func placeOnNode(name string) string {
	GinkgoHelper()
	path := "/usr/local/sbin/" + name
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	Expect(err).NotTo(HaveOccurred(), "the test places its own %s there, and replaces no program of the node", name)
	DeferCleanup(os.Remove, path)
	_, err = file.WriteString(ofNode)
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
	return path
}

// shareMounts gives a directory of the node the property that it has on nodes with systemd:
// the node sees what a container mounts there.
func shareMounts(ctx context.Context, directory string) {
	GinkgoHelper()
	Expect(os.MkdirAll(directory, 0o755)).To(Succeed())
	for _, options := range [][]string{{"--bind", directory, directory}, {"--make-shared", directory}} {
		_, err := run(ctx, "", "mount", options...)
		Expect(err).NotTo(HaveOccurred())
	}
	DeferCleanup(func(ctx SpecContext) error {
		_, err := run(ctx, "", "umount", "--lazy", directory)
		return err
	})
}

// aimed returns run-on-host as it is, if a container can reach process 1 of the machine. In a
// machine whose process 1 has more capabilities than root, the script gets the process of
// this suite, which has the same namespaces.
func aimed(script string) string {
	GinkgoHelper()
	if _, err := os.Readlink("/proc/1/ns/mnt"); err == nil {
		return script
	}
	Expect(script).To(ContainSubstring("\nprocess=1\n"))
	return strings.Replace(script, "\nprocess=1\n", fmt.Sprintf("\nprocess=%d\n", os.Getpid()), 1)
}

// namespaceOf returns the identity of a namespace of the node.
func namespaceOf(kind string) string {
	GinkgoHelper()
	identity, err := os.Readlink("/proc/self/ns/" + kind)
	Expect(err).NotTo(HaveOccurred())
	return identity
}

func awaitRunning(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var pod corev1.Pod
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod)).To(Succeed())
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
	}).WithContext(ctx).Should(Succeed(), func() string { return explain(namespace) })
}
