package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedOperators is the namespace of the operators to which most tests hand over their
// namespaces.
const sharedOperators = "e2e-operators"

// Namespaces of the tests that the shared operators watch.
const (
	cloudNamespace = "e2e-cloud" // its own infrastructure, with TLS and every fault
	aloneNamespace = "e2e-alone" // service CRs without a Nova
	imageNamespace = "e2e-image" // services with every build of the image

	libvirtNamespace = "e2e-libvirt" // its own infrastructure, with instances in QEMU
)

// operatorLabel is the label of the operators' Deployments and pods.
var operatorLabel = client.MatchingLabels{"app.kubernetes.io/part-of": "asterism"}

// deployOperators deploys the demo's operators to another namespace. The names of
// ClusterRoleBindings, which are cluster-scoped, get the namespace as a suffix. The
// operator of shared volumes is left out, as the demo's watches the whole cluster.
func deployOperators(ctx context.Context, namespace string) {
	GinkgoHelper()
	makeNamespace(ctx, namespace)
	kustomize(ctx, fmt.Sprintf(`
resources: [%s]
namespace: %s
patches:
- target: {labelSelector: app.kubernetes.io/name=shared-volume-operator}
  patch: &delete |
    $patch: delete
    apiVersion: any
    kind: any
    metadata: {name: any}
- target: {kind: Namespace}
  patch: *delete
transformers:
- |-
  apiVersion: builtin
  kind: PrefixSuffixTransformer
  metadata: {name: suffix}
  suffix: -%[2]s
  fieldSpecs: [{kind: ClusterRoleBinding, path: metadata/name}]
`, repository(".demo", "operators"), namespace))
	awaitOperators(ctx, namespace)
}

// handOver hands a namespace over to the operators in another namespace, with
// config/namespace.
func handOver(ctx context.Context, namespace, operators string) {
	GinkgoHelper()
	kustomize(ctx, fmt.Sprintf(`
resources: [%s]
namespace: %s
patches:
- target: {kind: RoleBinding}
  patch: |-
    - {op: replace, path: /subjects/0/namespace, value: %s}
`, repository("config", "namespace"), namespace, operators))
}

// kustomize applies a kustomization whose paths are absolute.
func kustomize(ctx context.Context, content string) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager="+tester, "-k", kustomization(content))
}

// kustomization is a new folder with a kustomization, whose absolute paths of the
// repository kustomize takes as relative paths alone.
func kustomization(content string) (folder string) {
	GinkgoHelper()
	folder = GinkgoT().TempDir()
	relative, err := filepath.Rel(folder, repository())
	Expect(err).NotTo(HaveOccurred())
	content = ofRelease(strings.ReplaceAll(content, repository(), relative))
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(content), 0o600)).To(Succeed())
	return folder
}

// awaitOperators waits until every operator in some namespaces runs its newest revision.
func awaitOperators(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, operator := range operators(ctx, namespaces...) {
			g.Expect(isRolledOut(&operator)).To(BeTrue(), "Deployment %s", operator.Name)
		}
	}).WithContext(ctx).Should(Succeed(), func() string { return explain(namespaces[0]) })
}

func operators(ctx context.Context, namespaces ...string) []appsv1.Deployment {
	GinkgoHelper()
	var all []appsv1.Deployment
	for _, namespace := range namespaces {
		var found appsv1.DeploymentList
		Expect(k8s.List(ctx, &found, client.InNamespace(namespace), operatorLabel)).To(Succeed())
		Expect(found.Items).NotTo(BeEmpty(), "no operator in namespace %s", namespace)
		all = append(all, found.Items...)
	}
	return all
}

func isRolledOut(deployment *appsv1.Deployment) bool {
	status, wanted := deployment.Status, *deployment.Spec.Replicas
	return status.ObservedGeneration == deployment.Generation &&
		status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted
}

// scaleOperators starts or stops operators, and waits until that is done.
func scaleOperators(ctx context.Context, namespace string, replicas int, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		kubectl(ctx, "scale", "deployment", "--selector=app.kubernetes.io/name="+name+"-operator", "--namespace="+namespace, fmt.Sprintf("--replicas=%d", replicas))
	}
	awaitOperators(ctx, namespace)
}

// account returns the prefix of the user names of a namespace's operators in the audit log.
func account(namespace string) string { return "system:serviceaccount:" + namespace + ":" }
