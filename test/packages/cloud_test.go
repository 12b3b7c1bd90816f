package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"asterism.dev/test/project"
)

// operators are the operators of the control plane.
var operators []string

func readOperators() {
	GinkgoHelper()
	all, err := project.Operators(repository())
	Expect(err).NotTo(HaveOccurred())
	for _, operator := range all {
		if operator.Namespace == systemNamespace {
			operators = append(operators, operator.Name)
		}
	}
	Expect(operators).NotTo(BeEmpty())
}

// can answers "yes" or "no" for the right of an operator of the control plane in a
// namespace.
func can(ctx context.Context, operator, verb, resource, namespace string) string {
	return canAs(ctx, systemNamespace, "asterism-"+operator+"-operator", verb, resource, namespace)
}

// canAs is can for a ServiceAccount; without a namespace, the right is one in the whole
// cluster.
func canAs(ctx context.Context, accountNamespace, account, verb, resource, namespace string) string {
	out, _ := run(ctx, "", "kubectl", "auth", "can-i", verb, resource, "--namespace", namespace, // exits with 1 for "no"
		"--as", "system:serviceaccount:"+accountNamespace+":"+account)
	return strings.TrimSpace(out)
}

// expectRightsInCloud expects that the operators may read Secrets in the namespace of the
// ControlPlane, and not in other namespaces.
func expectRightsInCloud(ctx context.Context, others ...string) {
	GinkgoHelper()
	for _, operator := range operators {
		Expect(can(ctx, operator, "list", "secrets", cloudNamespace)).To(Equal("yes"), operator)
		for _, other := range append(others, "default", "kube-system") {
			Expect(can(ctx, operator, "list", "secrets", other)).To(Equal("no"), operator+" in "+other)
		}
	}
}

// deployCloud deploys the ControlPlane of the demo, and boots a server.
func deployCloud(ctx context.Context) {
	GinkgoHelper()
	measure("ACTIVE", func() {
		makeTarget(ctx, "demo", "CLUSTER=existing", "OPERATORS=installed", "IMAGE_REGISTRY="+imagePrefix)
	})
}

// novaImage is the image of the demo's ControlPlane and of its servers, which no release
// contains.
func novaImage() string { return imagePrefix + "/demo/openstack:bookworm" }

// expectNothingElsewhere expects that no operator reports on an object outside of its
// namespaces.
func expectNothingElsewhere(ctx context.Context) {
	GinkgoHelper()
	apply(ctx, scheduler)
	defer kubectl(ctx, "delete", "novascheduler/other", "--namespace=default")
	Consistently(func() string {
		return kubectl(ctx, "get", "novascheduler/other", "--namespace=default", "--output=jsonpath={.status}")
	}, 10*time.Second, time.Second).Should(BeEmpty())
}

// expectNoInterruption changes the operators, and expects that no request to the compute
// API fails, that the pods of Nova stay, and that the user's objects do not change.
func expectNoInterruption(ctx context.Context, change func()) {
	GinkgoHelper()
	pods, before := podUIDs(ctx, cloudNamespace), specs(ctx)
	requests := load(ctx)
	change()
	expectReady(ctx)
	answered, failed := requests()
	AddReportEntry("requests", fmt.Sprintf("%d answered, %d failed", answered, failed))
	Expect(failed).To(BeZero())
	Expect(answered).NotTo(BeZero())
	Expect(podUIDs(ctx, cloudNamespace)).To(Equal(pods), "the pods of Nova")
	Expect(specs(ctx)).To(Equal(before), "the specs of the user's objects")
}

// expectReady waits until the ControlPlane is ready.
func expectReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string {
		return kubectl(ctx, "get", "controlplane/demo", "--namespace", cloudNamespace, `--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	}).WithContext(ctx).Should(Equal("True"))
}

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
