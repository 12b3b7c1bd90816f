package e2e

import (
	"context"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cellsOf lists the names of the cells that a Nova's superconductor knows. Its
// pod may just be replaced, because a new cell restarts it.
func cellsOf(ctx context.Context, namespace, nova string) []string {
	GinkgoHelper()
	var out string
	Eventually(func() (err error) {
		out, err = execIn(ctx, namespace, nova+"-superconductor-0", "nova-manage", "cell_v2", "list_cells")
		return err
	}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
	var names []string
	for line := range strings.Lines(out) {
		if columns := strings.Split(line, "|"); len(columns) > 2 && strings.TrimSpace(columns[1]) != "Name" {
			names = append(names, strings.TrimSpace(columns[1]))
		}
	}
	return names
}

// tenantOf is the project that a connection works in.
func tenantOf(c cloud) string {
	GinkgoHelper()
	result, ok := c.provider.GetAuthResult().(tokens.CreateResult)
	Expect(ok).To(BeTrue())
	project, err := result.ExtractProject()
	Expect(err).NotTo(HaveOccurred())
	return project.ID
}

// bootServer boots a server and waits until it is ACTIVE, as the demo does.
func bootServer(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	_, err := run(ctx, "", repository("examples", "demo", "boot-server"), name, namespace)
	Expect(err).NotTo(HaveOccurred())
}

// workKinds are the kinds of what the operators make, beside their own.
var workKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// everything lists the objects of a namespace of the family's kinds and of
// those that its operators make.
func everything(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	kinds := workKinds
	for _, kind := range familyKinds {
		kinds = append(kinds[:len(kinds):len(kinds)], object(kind, "", "").GroupVersionKind())
	}
	var all []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		Expect(k8s.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		all = append(all, list.Items...)
	}
	return all
}

// uidsOf tells two states of a namespace apart: what was made again has
// another UID.
func uidsOf(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, o := range everything(ctx, namespace) {
		uids[o.GetKind()+"/"+o.GetName()] = string(o.GetUID())
	}
	return uids
}
