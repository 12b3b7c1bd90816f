package packages

import (
	"context"
	"encoding/json"
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

// subscribe applies a file of config/olm for the catalog of this suite.
func subscribe(ctx context.Context, file string) {
	GinkgoHelper()
	content, err := os.ReadFile(repository("config", "olm", file))
	Expect(err).NotTo(HaveOccurred())
	apply(ctx, strings.ReplaceAll(string(content), "openshift-marketplace", olmNamespace))
}

const secondOperatorGroup = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: second, namespace: asterism-system}
spec: {targetNamespaces: [openstack]}
`

// overrideImages sets environment variables in the Subscription of a package, which OLM may
// have created.
func overrideImages(ctx context.Context, namespace, name string, images map[string]string) {
	GinkgoHelper()
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var env []variable
	for name, image := range images {
		env = append(env, variable{name, image})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"config": map[string]any{"env": env}}})
	Expect(err).NotTo(HaveOccurred())
	for _, s := range list(ctx, "subscriptions", namespace) {
		if s.Spec["name"] == name {
			kubectl(ctx, "patch", "subscription", s.Metadata.Name, "--namespace", namespace, "--type=merge", "--patch", string(patch))
			return
		}
	}
	Fail("no Subscription of package " + name)
}

// phases returns the phases of the ClusterServiceVersions by name.
func phases(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	return statusOf(ctx, namespace, "phase")
}

// reasons returns the reasons of the phases.
func reasons(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	return statusOf(ctx, namespace, "reason")
}

func statusOf(ctx context.Context, namespace, field string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, csv := range list(ctx, "clusterserviceversions", namespace) {
		found[csv.Metadata.Name] = fmt.Sprint(csv.Status[field])
	}
	return found
}

// message is the message of the phase of an operator's ClusterServiceVersion.
func message(ctx context.Context, operator, version string) string {
	GinkgoHelper()
	return statusOf(ctx, systemNamespace, "message")[operator+"-operator.v"+version]
}

// expectInstalled waits until all operators of the control plane are of the version, and OLM
// has removed earlier versions.
func expectInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	all := map[string]string{}
	for _, operator := range operators {
		all[operator+"-operator.v"+version] = "Succeeded"
	}
	Eventually(func() map[string]string { return phases(ctx, systemNamespace) }).WithContext(ctx).Should(Equal(all), explain(ctx))
}

// explain lists what OLM says about packages that are not installed.
func explain(ctx context.Context) func() string {
	return func() string {
		out, err := run(ctx, "", "kubectl", "get", "subscriptions,installplans,clusterserviceversions,catalogsources,operatorconditions,jobs,pods", "--all-namespaces", "--output=wide")
		if err != nil {
			return err.Error()
		}
		conditions, _ := run(ctx, "", "kubectl", "get", "subscriptions", "--all-namespaces", "--output=jsonpath={range .items[*]}{.metadata.name}: {.status.conditions}{\"\\n\"}{end}")
		return out + conditions
	}
}
