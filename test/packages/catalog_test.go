package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
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

// serveCatalog tells OLM to serve the catalog of a release.
func serveCatalog(ctx context.Context, of release) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--namespace", olmNamespace, "-f", catalogSource(of))
}

// serveOtherCatalog tells OLM to serve an image in place of the catalog of a release.
func serveOtherCatalog(ctx context.Context, of release, image string) {
	GinkgoHelper()
	var source map[string]any
	readYAML(catalogSource(of), &source)
	source["spec"].(map[string]any)["image"] = image
	content, err := yaml.Marshal(source)
	Expect(err).NotTo(HaveOccurred())
	_, err = run(ctx, string(content), "kubectl", "apply", "--namespace", olmNamespace, "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

func catalogSource(of release) string { return filepath.Join(of.folder, "catalogsource.yaml") }

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
func message(ctx context.Context, operator string, of release) string {
	GinkgoHelper()
	return statusOf(ctx, systemNamespace, "message")[of.packaged(operator)]
}

// expectInstalled waits until the operators in a namespace, those of the control plane or that
// of shared volumes, are those of the release, OLM has removed earlier versions, and its
// InstallPlans are complete: one that is not would create deleted operators again.
func expectInstalled(ctx context.Context, namespace string, of release, operators ...string) {
	GinkgoHelper()
	all := map[string]string{}
	for _, operator := range operators {
		all[of.packaged(operator)] = "Succeeded"
	}
	Eventually(func(g Gomega) {
		g.Expect(phases(ctx, namespace)).To(Equal(all))
		g.Expect(list(ctx, "installplans", namespace)).To(HaveEach(HaveField("Status", HaveKeyWithValue("phase", "Complete"))))
	}).WithContext(ctx).Should(Succeed(), explain(ctx))
}

// removeWithOLM removes the operators of a namespace. OLM finishes an InstallPlan that it has
// begun, and so may create deleted operators again.
func removeWithOLM(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func() string {
		kubectl(ctx, "delete", "subscriptions,clusterserviceversions", "--all", "--timeout=2m", "--namespace", namespace)
		return kubectl(ctx, "get", "deployments,serviceaccounts,roles", "--namespace", namespace, "--output=name")
	}).WithContext(ctx).WithPolling(5*time.Second).MustPassRepeatedly(3).ShouldNot(ContainSubstring("asterism-"), explain(ctx))
}

// explain lists what OLM says about packages that are not installed.
func explain(ctx context.Context) func() string {
	return func() string {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // the limit of the spec may have passed
		defer cancel()
		out, err := run(ctx, "", "kubectl", "get", "subscriptions,installplans,clusterserviceversions,catalogsources,operatorconditions,jobs,deployments,pods", "--all-namespaces", "--output=wide")
		if err != nil {
			return err.Error()
		}
		conditions, _ := run(ctx, "", "kubectl", "get", "subscriptions", "--all-namespaces", "--output=jsonpath={range .items[*]}{.metadata.name}: {.status.conditions}{\"\\n\"}{end}")
		return out + conditions
	}
}
