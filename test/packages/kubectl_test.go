package packages

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func withKubectl() {
	// manifest is the path of a file of a release.
	manifest := func(of release, name string) string { return filepath.Join(of.folder, "dist", name) }
	install := func(ctx context.Context, of release) {
		GinkgoHelper()
		kubectl(ctx, "apply", "--server-side", "-f", manifest(of, "install.yaml"))
		awaitRollout(ctx, of)
	}

	It("installs all operators by one file", func(ctx SpecContext) {
		measure("all operators available", func() { install(ctx, first) })
	})

	It("hands a namespace over by one file", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
		kubectl(ctx, "apply", "--namespace", cloudNamespace, "-f", manifest(first, "namespace.yaml"))
		expectRightsInCloud(ctx, systemNamespace)
	})

	It("leaves other namespaces alone", func(ctx SpecContext) { expectNothingElsewhere(ctx) })

	It("runs no image that the list of the release lacks", func(ctx SpecContext) { expectListedImages(ctx, first) })

	It("installs the operator of shared volumes by one file", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--server-side", "-f", manifest(first, "shared-volume.yaml"))
		awaitSharedVolumes(ctx, first)
	})

	It("allows pods of one account to run programs of their node by one file", func(ctx SpecContext) {
		const namespace = "run-on-host"
		kubectl(ctx, "create", "namespace", namespace)
		kubectl(ctx, "apply", "--namespace", namespace, "-f", manifest(first, "run-on-host.yaml"))
		Expect(mayBePrivileged(ctx, namespace, "asterism-run-on-host")).To(Equal("true"))
		Expect(mayBePrivileged(ctx, namespace, "default")).NotTo(Equal("true"))
		Expect(mayBePrivileged(ctx, cloudNamespace, "asterism-run-on-host")).NotTo(Equal("true"))
		kubectl(ctx, "delete", "--namespace", namespace, "-f", manifest(first, "run-on-host.yaml"), "--timeout=1m")
		deleteNamespaces(ctx, namespace)
	})

	It("upgrades operators, and changes none of their objects", func(ctx SpecContext) {
		applySamples(ctx, "former")
		before, operators := identities(ctx), operatorImages(ctx)
		kubectl(ctx, "apply", "--namespace", cloudNamespace, "-f", manifest(second, "namespace.yaml"))
		kubectl(ctx, "apply", "--server-side", "-f", manifest(second, "shared-volume.yaml"))
		install(ctx, second)
		awaitSharedVolumes(ctx, second)
		Expect(operatorImages(ctx)).NotTo(Equal(operators))

		By("waiting until the new operators have worked")
		applySamples(ctx, "later")
		Consistently(func() map[string]identity { return only(before, identities(ctx)) }, 10*time.Second, time.Second).Should(Equal(before))
	})

	It("removes operators and their kinds", func(ctx SpecContext) {
		kubectl(ctx, "delete", "controlplanes,novaschedulers", "--all", "--namespace", cloudNamespace, "--timeout=5m")
		removeDriver(ctx)
		kubectl(ctx, "delete", "--namespace", cloudNamespace, "-f", manifest(second, "namespace.yaml"), "--timeout=1m")
		kubectl(ctx, "delete", "--ignore-not-found", "-f", manifest(second, "install.yaml"), "--timeout=5m") // deletes the namespace first
		kubectl(ctx, "delete", "--ignore-not-found", "-f", manifest(second, "shared-volume.yaml"), "--timeout=5m")
		expectRemoved(ctx)
		Expect(kinds(ctx)).To(BeEmpty())
		deleteNamespaces(ctx, cloudNamespace)
	})
}

// awaitSharedVolumes waits until the operator of shared volumes of a release is available, and
// has created the DaemonSet of the driver. This machine may not reach the driver's images.
func awaitSharedVolumes(ctx context.Context, of release) {
	GinkgoHelper()
	const deployment = "deployment/asterism-shared-volume-operator"
	kubectl(ctx, "rollout", "status", deployment, "--namespace", storageNamespace, "--timeout=5m")
	Expect(kubectl(ctx, "get", deployment, "--namespace", storageNamespace, "--output=jsonpath={.spec.template.spec.containers[0].image}")).
		To(HaveSuffix("@" + of.image("shared-volume-operator").Digest))
	Eventually(func() string {
		return kubectl(ctx, "get", "daemonsets", "--namespace", "asterism-efs-csi", "--output=name")
	}).WithContext(ctx).ShouldNot(BeEmpty())
}

// mayBePrivileged answers "true" if OpenShift would give privileged pods to an account. This
// cluster has no SecurityContextConstraints, so `kubectl auth can-i` does not know the resource.
func mayBePrivileged(ctx context.Context, namespace, account string) string {
	GinkgoHelper()
	review := fmt.Sprintf(`
apiVersion: authorization.k8s.io/v1
kind: SubjectAccessReview
spec:
  user: system:serviceaccount:%[1]s:%[2]s
  resourceAttributes: {namespace: %[1]s, verb: use, group: security.openshift.io, resource: securitycontextconstraints, name: privileged}
`, namespace, account)
	out, err := run(ctx, review, "kubectl", "create", "-f", "-", "--output=jsonpath={.status.allowed}")
	Expect(err).NotTo(HaveOccurred())
	return out
}

// applySamples creates a ControlPlane without the servers that it names, and a NovaScheduler
// without pods, and waits until the operators have created their objects and report on them.
func applySamples(ctx context.Context, name string) {
	GinkgoHelper()
	for sample, from := range map[string]string{
		repository("operators", "meta", "config", "samples", "controlplane.yaml"): "demo",
		schedulerSample(): "scheduler",
	} {
		content, err := os.ReadFile(sample)
		Expect(err).NotTo(HaveOccurred())
		renamed := strings.NewReplacer("\n  name: "+from+"\n", "\n  name: "+name+"\n").Replace(string(content))
		Expect(renamed).NotTo(Equal(string(content)))
		apply(ctx, renamed, "--namespace", cloudNamespace)
	}
	kubectl(ctx, "scale", "novascheduler/"+name, "--replicas=0", "--namespace", cloudNamespace)
	Eventually(func(g Gomega) {
		found := identities(ctx)
		for _, kind := range []string{"ControlPlane", "Nova", "NovaScheduler", "StatefulSet"} {
			g.Expect(found).To(HaveKey(kind + "/" + name))
		}
		for _, o := range list(ctx, "controlplanes,novas,novaschedulers", cloudNamespace) {
			g.Expect(o.Status).To(HaveKeyWithValue("observedGeneration", BeNumerically("==", o.Metadata.Generation)), o.Kind+" "+o.Metadata.Name)
		}
	}).WithContext(ctx).Should(Succeed())
}

// identity changes if an object is recreated, or if its spec changes.
type identity struct {
	UID        string
	Generation int
}

// identities returns the identities of the objects of the operators' kinds in the namespace of
// the ControlPlane, and of the objects that the operators create for them.
func identities(ctx context.Context) map[string]identity {
	GinkgoHelper()
	resources := []string{"statefulsets", "configmaps", "secrets", "networkpolicies"}
	for _, definition := range kinds(ctx) {
		_, resource, _ := strings.Cut(definition, "/")
		resources = append(resources, resource)
	}
	found := map[string]identity{}
	for _, o := range list(ctx, strings.Join(resources, ","), cloudNamespace) {
		found[o.Kind+"/"+o.Metadata.Name] = identity{UID: o.Metadata.UID, Generation: o.Metadata.Generation}
	}
	return found
}

// only returns the identities of the objects that are also in before.
func only(before, now map[string]identity) map[string]identity {
	maps.DeleteFunc(now, func(name string, _ identity) bool {
		_, known := before[name]
		return !known
	})
	return now
}

// measure reports the duration of a step.
func measure(step string, run func()) {
	GinkgoHelper()
	started := time.Now()
	run()
	AddReportEntry("time", step+" after "+time.Since(started).Round(time.Second).String())
}
