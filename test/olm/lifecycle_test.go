package olm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Operators of a catalog", Ordered, func() {
	var registry string
	var first, second release

	BeforeAll(func(ctx SpecContext) {
		registry = serveRegistry()
		pushOperands(registry)
		By("releasing 0.1.0")
		first = makeRelease(ctx, registry, "0.1.0", nil)
		By("starting OLM")
		installOLM(ctx, pushOLM(registry))
		kubectl(ctx, "apply", "--server-side", "-f", repository("examples", "demo", "namespace.yaml"))
	})

	It("are not installed from a catalog that lacks one of them", func(ctx SpecContext) {
		serveCatalog(ctx, pushCatalogWithout(registry, first.folder, "nova-scheduler-operator"))
		apply(ctx, subscription)
		Eventually(func() string {
			return kubectl(ctx, "get", "subscription/asterism", "--namespace", systemNamespace, `--output=jsonpath={.status.conditions[?(@.type=="ResolutionFailed")].message}`)
		}).WithContext(ctx).Should(ContainSubstring("nova-scheduler-operator"), explain(ctx))
		Expect(phases(ctx)).To(BeEmpty())
		kubectl(ctx, "delete", "subscription/asterism", "--namespace", systemNamespace)
	})

	It("are installed by one Subscription", func(ctx SpecContext) {
		serveCatalog(ctx, first.catalog)
		started := time.Now()
		apply(ctx, subscription)
		Eventually(func() map[string]string { return phases(ctx) }).WithContext(ctx).Should(Equal(installed("0.1.0")), explain(ctx))
		AddReportEntry("time", fmt.Sprintf("all operators Succeeded after %s", time.Since(started).Round(time.Second)))
		plans := list(ctx, "installplans", systemNamespace)
		Expect(plans).To(HaveLen(1))
		content := kubectl(ctx, "get", "installplan", plans[0].Metadata.Name, "--namespace", systemNamespace, "--output=json")
		AddReportEntry("InstallPlan", fmt.Sprintf("%d bytes", len(content)))
		Expect(len(content)).To(BeNumerically("<", 1_000_000))
	})

	It("have rights in the namespaces of the OperatorGroup alone", func(ctx SpecContext) {
		can := func(account, verb, resource, namespace string) string {
			out, _ := run(ctx, "", "kubectl", "auth", "can-i", verb, resource, "--namespace", namespace, // exits with 1 for "no"
				"--as", "system:serviceaccount:"+systemNamespace+":asterism-"+account+"-operator")
			return strings.TrimSpace(out)
		}
		for _, operator := range []string{"meta", "nova", "nova-api", "nova-conductor", "nova-metadata", "nova-scheduler"} {
			Expect(can(operator, "list", "secrets", cloudNamespace)).To(Equal("yes"), operator)
			Expect(can(operator, "list", "secrets", "default")).To(Equal("no"), operator)
			Expect(can(operator, "list", "rolebindings.rbac.authorization.k8s.io", cloudNamespace)).To(Equal("no"), operator)
		}
	})

	It("run a ControlPlane with an ACTIVE server", func(ctx SpecContext) {
		started := time.Now()
		makeTarget(ctx, "demo", "CLUSTER=existing", "OPERATORS=installed", "IMAGE_REGISTRY="+registry)
		AddReportEntry("time", fmt.Sprintf("ACTIVE after %s", time.Since(started).Round(time.Second)))
	})

	It("do not see other namespaces", func(ctx SpecContext) {
		apply(ctx, scheduler)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "novascheduler/other", "--namespace=default") })
		Consistently(func() string {
			return kubectl(ctx, "get", "novascheduler/other", "--namespace=default", "--output=jsonpath={.status}")
		}, 10*time.Second, time.Second).Should(BeEmpty())
	})

	It("are upgraded through the catalog", func(ctx SpecContext) {
		By("releasing 0.2.0")
		second = makeRelease(ctx, registry, "0.2.0", &first)
		pods, planes := uids(ctx, "pods", cloudNamespace), specs(ctx)
		requests := load(ctx)
		serveCatalog(ctx, second.catalog)
		Eventually(func() map[string]string { return phases(ctx) }).WithContext(ctx).Should(Equal(installed("0.2.0")), explain(ctx))
		Eventually(func() string {
			return kubectl(ctx, "get", "controlplane/demo", "--namespace", cloudNamespace, `--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		}).WithContext(ctx).Should(Equal("True"))
		answered, failed := requests()
		AddReportEntry("requests", fmt.Sprintf("%d answered, %d failed", answered, failed))
		Expect(failed).To(BeZero())
		Expect(answered).NotTo(BeZero())
		Expect(uids(ctx, "pods", cloudNamespace)).To(Equal(pods), "the pods of Nova")
		Expect(specs(ctx)).To(Equal(planes), "the specs of the user's objects")
	})

	It("are removed", func(ctx SpecContext) {
		kubectl(ctx, "delete", "controlplane", "--all", "--namespace", cloudNamespace, "--timeout=5m")
		kubectl(ctx, "delete", "subscriptions", "--all", "--namespace", systemNamespace)
		kubectl(ctx, "delete", "clusterserviceversions", "--all", "--namespace", systemNamespace)
		Eventually(func() string {
			return kubectl(ctx, "get", "deployments,serviceaccounts,roles", "--namespace", systemNamespace, "--output=name")
		}).WithContext(ctx).ShouldNot(ContainSubstring("asterism-"))
	})
})

// specs returns the specs of the user's objects.
func specs(ctx context.Context) string {
	GinkgoHelper()
	var all []map[string]any
	for _, o := range list(ctx, "controlplanes,novas,novacells", cloudNamespace) {
		all = append(all, o.Spec)
	}
	content, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// load requests the compute API from within the cluster until stop is called.
func load(ctx context.Context) (stop func() (answered, failed int)) {
	GinkgoHelper()
	const script = `while [ ! -e /tmp/stop ]; do
  if python3 -c 'import urllib.request; urllib.request.urlopen("http://demo-api.openstack.svc.cluster.local:8774/", timeout=5)' 2>/dev/null; then echo ok; else echo failed; fi
  sleep 0.2
done`
	execute := []string{"exec", "--namespace", cloudNamespace, "deployment/openstackclient", "--"}
	kubectl(ctx, append(execute, "rm", "-f", "/tmp/stop")...)
	result := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		out, err := run(ctx, "", "kubectl", append(execute, "sh", "-c", script)...)
		Expect(err).NotTo(HaveOccurred())
		result <- out
	}()
	return func() (answered, failed int) {
		kubectl(ctx, append(execute, "touch", "/tmp/stop")...)
		out := <-result
		return strings.Count(out, "ok\n"), strings.Count(out, "failed\n")
	}
}

const scheduler = `
apiVersion: nova.asterism.dev/v1alpha1
kind: NovaScheduler
metadata: {name: other, namespace: default}
spec:
  containerImage: quay.example/nova:1
  apiDatabaseSecretRef: {name: api-database}
  cell0DatabaseSecretRef: {name: cell0-database}
  messageBusSecretRef: {name: bus}
  identitySecretRef: {name: nova-identity}
`
