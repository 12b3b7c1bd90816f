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

// sharedOperators is the namespace of the operators that watch the namespaces
// of most tests. What they may do is bound in the whole cluster, because a
// namespace that is deleted takes the RoleBindings in it along, and may do so
// before the operators are done.
const sharedOperators = "e2e-operators"

// Namespaces of the tests that the shared operators watch.
const (
	cloudNamespace = "e2e-cloud" // infrastructure of its own, and every fault
	aloneNamespace = "e2e-alone" // service CRs without a Nova
)

// operatorLabel has the operators' Deployments and pods.
var operatorLabel = client.MatchingLabels{"app.kubernetes.io/part-of": "asterism"}

func deploySharedOperators(ctx context.Context) {
	GinkgoHelper()
	makeNamespace(ctx, sharedOperators)
	watchNamespaces(ctx, sharedOperators, cloudNamespace, aloneNamespace)
}

// watchNamespaces deploys, to a namespace, the operators that the demo runs, as
// config/all-namespaces does, but for some namespaces. Names get the namespace as
// a suffix, because some of them are the cluster's. Left out is the operator of
// shared volumes: the demo's looks after the whole cluster.
func watchNamespaces(ctx context.Context, namespace string, watched ...string) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	relative := func(parts ...string) string {
		path, err := filepath.Rel(folder, repository(parts...))
		Expect(err).NotTo(HaveOccurred())
		return path
	}
	kustomization := fmt.Sprintf(`
resources: [%s]
components: [%s]
namespace: %s
nameSuffix: -%[3]s
patches:
- target: {labelSelector: app.kubernetes.io/name=shared-volume-operator}
  patch: |
    $patch: delete
    apiVersion: any
    kind: any
    metadata: {name: any}
- target: {kind: Deployment}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: operator}
    spec: {template: {spec: {containers: [{name: operator, env: [{name: WATCH_NAMESPACE, value: '%s'}]}]}}}
`, relative(".demo", "operators"), relative("config", "components", "all-namespaces"), namespace, strings.Join(watched, ","))
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager="+tester, "-k", folder)
	awaitOperators(ctx, namespace)
}

// awaitOperators waits until every operator of a namespace runs its newest revision.
func awaitOperators(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, operator := range operators(ctx, namespace) {
			g.Expect(isRolledOut(&operator)).To(BeTrue(), "Deployment %s", operator.Name)
		}
	}).WithContext(ctx).Should(Succeed(), func() string { return explain(namespace) })
}

func operators(ctx context.Context, namespace string) []appsv1.Deployment {
	GinkgoHelper()
	var found appsv1.DeploymentList
	Expect(k8s.List(ctx, &found, client.InNamespace(namespace), operatorLabel)).To(Succeed())
	Expect(found.Items).NotTo(BeEmpty(), "no operator in namespace %s", namespace)
	return found.Items
}

func isRolledOut(deployment *appsv1.Deployment) bool {
	status, wanted := deployment.Status, *deployment.Spec.Replicas
	return status.ObservedGeneration == deployment.Generation &&
		status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted
}

// scaleOperators starts or stops operators, and waits.
func scaleOperators(ctx context.Context, namespace string, replicas int, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		kubectl(ctx, "scale", "deployment", "--selector=app.kubernetes.io/name="+name+"-operator", "--namespace="+namespace, fmt.Sprintf("--replicas=%d", replicas))
	}
	awaitOperators(ctx, namespace)
}

// account is how the audit log names an operator of a namespace.
func account(namespace string) string { return "system:serviceaccount:" + namespace + ":" }
