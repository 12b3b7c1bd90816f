package packages

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const ofAsterism = "--selector=app.kubernetes.io/part-of=asterism"

// deleteControlPlanes deletes every ControlPlane while its operators run.
func deleteControlPlanes(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "controlplane", "--all", "--namespace", cloudNamespace, "--timeout=5m")
}

// expectRemoved waits until no object of an installation is left, except its kinds.
func expectRemoved(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string {
		return kubectl(ctx, "get", "deployments,serviceaccounts,roles,rolebindings,networkpolicies", "--all-namespaces", ofAsterism, "--output=name") +
			kubectl(ctx, "get", "clusterroles,clusterrolebindings,validatingadmissionpolicies", ofAsterism, "--output=name")
	}).WithContext(ctx).Should(BeEmpty())
}

// kinds returns the CustomResourceDefinitions of the operators.
func kinds(ctx context.Context) (found []string) {
	GinkgoHelper()
	for name := range strings.FieldsSeq(kubectl(ctx, "get", "customresourcedefinitions", "--output=name")) {
		if strings.HasSuffix(name, "asterism.dev") {
			found = append(found, name)
		}
	}
	return found
}

// deleteKinds deletes the kinds that Helm and OLM keep.
func deleteKinds(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, append([]string{"delete", "--timeout=2m"}, kinds(ctx)...)...)
}

func deleteNamespaces(ctx context.Context, names ...string) {
	GinkgoHelper()
	kubectl(ctx, append([]string{"delete", "namespace", "--timeout=5m"}, names...)...)
}
