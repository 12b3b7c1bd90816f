package packages

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"asterism.dev/test/cloud"
)

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
	for _, operator := range first.operators() {
		Expect(can(ctx, operator, "list", "secrets", cloudNamespace)).To(Equal("yes"), operator)
		for _, other := range append(others, "default", "kube-system") {
			Expect(can(ctx, operator, "list", "secrets", other)).To(Equal("no"), operator+" in "+other)
		}
	}
}

// deployCloud deploys the ControlPlane of the demo, and boots a server whose name begins with
// server: the databases may have servers of a former ControlPlane, also of an earlier run.
func deployCloud(ctx context.Context, server string) {
	GinkgoHelper()
	server = fmt.Sprintf("%s-%d", server, GinkgoRandomSeed())
	measure("ACTIVE", func() {
		makeTarget(ctx, "demo", "CLUSTER=existing", "OPERATORS=installed", "IMAGE_REGISTRY="+imagePrefix, "RELEASE="+novaRelease)
		out, err := run(ctx, "", repository("examples", "demo", "boot-server"), server, cloudNamespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp("server %s .* is ACTIVE", server))
	})
}

// novaRelease is the release of Debian of the ControlPlane: make e2e uses a newer one, so that
// the oldest supported Nova runs in tests too.
const novaRelease = "bookworm"

// novaImage is the image of the demo's ControlPlane and of its servers, which no release
// contains.
func novaImage() string { return imagePrefix + "/demo/openstack:" + novaRelease }

// schedulerSample has a NovaScheduler and the Secrets that it needs.
func schedulerSample() string {
	return repository("operators", "nova-scheduler", "config", "samples", "scheduler.yaml")
}

// expectNothingElsewhere expects that no operator reports on an object outside its
// namespaces.
func expectNothingElsewhere(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--namespace=default", "-f", schedulerSample())
	defer kubectl(ctx, "delete", "--namespace=default", "-f", schedulerSample())
	Consistently(func() string {
		return kubectl(ctx, "get", "novascheduler/scheduler", "--namespace=default", "--output=jsonpath={.status}")
	}, 10*time.Second, time.Second).Should(BeEmpty())
}

// expectNoInterruption changes the operators, and expects that no request to the compute
// API fails, that the pods of Nova stay, and that the user's objects do not change. The
// requests read the demo's server, and so need Keystone, the API database and a cell: Nova
// answers without the servers of a cell that it does not reach.
func expectNoInterruption(ctx context.Context, change func()) {
	GinkgoHelper()
	pods, ofUser, ofOperators := podUIDs(ctx, cloudNamespace), specs(ctx, "controlplanes"), specs(ctx, "novas,novacells")
	load := cloud.StartLoad(ctx, cloud.Requests{
		URLs:  []string{cloud.ServiceURL(ctx, "http://demo-api."+cloudNamespace+".svc:8774/v2.1/servers")},
		Token: issueToken(ctx), Contains: `"demo"`, PerSecond: 5,
	})
	change()
	expectReady(ctx)
	floor := load.Floor()
	answered, failures := load.Stop()
	AddReportEntry("requests", fmt.Sprintf("%d answered, %d failed", answered, len(failures)))
	Expect(failures).To(BeEmpty())
	Expect(answered).To(BeNumerically(">=", floor))
	Expect(podUIDs(ctx, cloudNamespace)).To(Equal(pods), "the pods of Nova")
	Expect(specs(ctx, "controlplanes")).To(Equal(ofUser), "the user's objects")
	Expect(changed("", ofOperators, specs(ctx, "novas,novacells"))).To(BeEmpty(), "a field of an object that an operator has made")
}

// issueToken returns a token of the administrator.
func issueToken(ctx context.Context) string {
	GinkgoHelper()
	out := kubectl(ctx, "exec", "--namespace", cloudNamespace, "deployment/openstackclient", "--",
		"openstack", "token", "issue", "--format", "value", "--column", "id")
	return strings.TrimSpace(out)
}

// expectReady waits until the ControlPlane is ready.
func expectReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string {
		return kubectl(ctx, "get", "controlplane/demo", "--namespace", cloudNamespace, `--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
	}).WithContext(ctx).Should(Equal("True"))
}

// specs returns the specs of the cloud's objects of these kinds.
func specs(ctx context.Context, kinds string) (all []any) {
	GinkgoHelper()
	for _, o := range list(ctx, kinds, cloudNamespace) {
		all = append(all, o.Spec)
	}
	Expect(all).NotTo(BeEmpty())
	return all
}

// changed returns the path of a value that was another one before, "" for none. A newer operator may
// add fields.
func changed(path string, before, now any) string {
	switch before := before.(type) {
	case map[string]any:
		fields, _ := now.(map[string]any)
		for name, value := range before {
			if found := changed(path+"."+name, value, fields[name]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		items, _ := now.([]any)
		if len(items) != len(before) {
			return path + "[]"
		}
		for i, value := range before {
			if found := changed(fmt.Sprintf("%s[%d]", path, i), value, items[i]); found != "" {
				return found
			}
		}
		return ""
	}
	if !reflect.DeepEqual(before, now) {
		return path
	}
	return ""
}
