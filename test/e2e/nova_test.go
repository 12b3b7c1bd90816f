package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cellsOf lists the names of the cells in a Nova's API database. It retries, as a new cell
// restarts the superconductor's pod.
func cellsOf(ctx context.Context, namespace, nova string) []string {
	GinkgoHelper()
	var out string
	Eventually(func() (err error) {
		out, err = execIn(ctx, namespace, nova+"-superconductor-0", "nova-manage", "cell_v2", "list_cells")
		return err
	}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
	var names []string
	for line := range strings.Lines(out) {
		if columns := strings.Split(line, "|"); len(columns) > 2 && strings.TrimSpace(columns[1]) != "Name" {
			names = append(names, strings.TrimSpace(columns[1]))
		}
	}
	return names
}

// instanceOf asks a metadata service for a server of this account's project, with a request that
// has the signature of Neutron's agent with a key. It returns the status, and the UUID in the answer.
func (c cloud) instanceOf(ctx context.Context, address, id, key string) (status int, uuid string) {
	GinkgoHelper()
	result, ok := c.provider.GetAuthResult().(tokens.CreateResult)
	Expect(ok).To(BeTrue())
	project, err := result.ExtractProject()
	Expect(err).NotTo(HaveOccurred())
	signature := hmac.New(sha256.New, []byte(key))
	signature.Write([]byte(id))

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/openstack/latest/meta_data.json", nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header = http.Header{
		"X-Instance-Id": {id}, "X-Tenant-Id": {project.ID},
		"X-Instance-Id-Signature": {hex.EncodeToString(signature.Sum(nil))},
	}
	response, err := httpClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	var found struct{ UUID string }
	if response.StatusCode == http.StatusOK {
		Expect(json.NewDecoder(response.Body).Decode(&found)).To(Succeed())
	}
	return response.StatusCode, found.UUID
}

// bootServer boots a server and waits until it is ACTIVE, as the demo does.
func bootServer(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	_, err := run(ctx, "", repository("examples", "demo", "boot-server"), name, namespace)
	Expect(err).NotTo(HaveOccurred())
}

// childKinds are Kubernetes' kinds of the operators' children, and pods.
var childKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Pod"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// everything lists the objects of Asterism's kinds and of childKinds in a namespace.
func everything(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	kinds := childKinds
	for _, kind := range asterismKinds {
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

// uidsOf returns the UIDs of a namespace's objects. A recreated object has another UID.
func uidsOf(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	uids := map[string]string{}
	for _, o := range everything(ctx, namespace) {
		uids[o.GetKind()+"/"+o.GetName()] = string(o.GetUID())
	}
	return uids
}
