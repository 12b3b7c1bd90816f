package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// installOLM starts OLM with its own CRDs and the image of tools/olm.
func installOLM(ctx context.Context, image string) {
	GinkgoHelper()
	definitions := filepath.Join(os.Getenv("OLM_MODULE"), "deploy", "chart", "crds")
	kubectl(ctx, "apply", "--server-side", "-f", definitions)
	kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", definitions)
	manifests, err := os.ReadFile(filepath.Join("manifests", "olm.yaml"))
	Expect(err).NotTo(HaveOccurred())
	apply(ctx, strings.ReplaceAll(string(manifests), "OLM_IMAGE", image))
	kubectl(ctx, "wait", "deployment", "--all", "--namespace", olmNamespace, "--for=condition=Available", "--timeout=5m")
}

// serveCatalog tells OLM to serve the catalog of an image.
func serveCatalog(ctx context.Context, image string) {
	GinkgoHelper()
	apply(ctx, fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: asterism, namespace: %s}
spec:
  sourceType: grpc
  image: %s
  displayName: Asterism
  grpcPodConfig:
    securityContextConfig: restricted
    extractContent: {catalogDir: /configs}
`, olmNamespace, image))
}

// subscription is the only object that a user creates besides the OperatorGroup.
const subscription = `
apiVersion: v1
kind: Namespace
metadata:
  name: asterism-system
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: asterism, namespace: asterism-system}
spec: {targetNamespaces: [openstack]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: asterism, namespace: asterism-system}
spec:
  source: asterism
  sourceNamespace: olm
  name: meta-operator
  channel: candidate-v0
`

// phases returns the phases of the ClusterServiceVersions by name.
func phases(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, csv := range list(ctx, "clusterserviceversions", systemNamespace) {
		found[csv.Metadata.Name] = fmt.Sprint(csv.Status["phase"])
	}
	return found
}

// installed are the ClusterServiceVersions of a version when OLM is done.
func installed(version string) map[string]string {
	all := map[string]string{}
	for _, operator := range operators {
		all[operator+"-operator.v"+version] = "Succeeded"
	}
	return all
}

// explain lists what OLM says about packages that are not installed.
func explain(ctx context.Context) func() string {
	return func() string {
		out, err := run(ctx, "", "kubectl", "get", "subscriptions,installplans,clusterserviceversions,catalogsources,jobs,pods", "--all-namespaces", "--output=wide")
		if err != nil {
			return err.Error()
		}
		conditions, _ := run(ctx, "", "kubectl", "get", "subscriptions", "--namespace", systemNamespace, "--output=jsonpath={range .items[*]}{.metadata.name}: {.status.conditions}{\"\\n\"}{end}")
		return out + conditions
	}
}
