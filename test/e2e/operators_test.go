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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedOperators is the namespace of the operators that watch the namespaces
// of most tests. They have their rights in the whole cluster, because a
// namespace that is deleted takes the Roles in it along, and may do so before
// the operators are done.
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

// watchNamespaces deploys operators to a namespace that watch others.
func watchNamespaces(ctx context.Context, namespace string, watched ...string) {
	GinkgoHelper()
	deployOperators(ctx, namespace, "- {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: WATCH_NAMESPACE, value: '"+strings.Join(watched, ",")+"'}}")
	var roles rbacv1.RoleList
	Expect(k8s.List(ctx, &roles, client.InNamespace(namespace))).To(Succeed())
	Expect(roles.Items).NotTo(BeEmpty())
	for _, role := range roles.Items {
		everywhere(ctx, role)
	}
	awaitOperators(ctx, namespace)
}

// everywhere gives the subjects of a Role its rights in every namespace.
func everywhere(ctx context.Context, role rbacv1.Role) {
	GinkgoHelper()
	var bindings rbacv1.RoleBindingList
	Expect(k8s.List(ctx, &bindings, client.InNamespace(role.Namespace))).To(Succeed())
	meta := metav1.ObjectMeta{Name: role.Name + "-everywhere", Labels: map[string]string{madeHere: "true"}}
	for _, binding := range bindings.Items {
		if binding.RoleRef.Name != role.Name {
			continue
		}
		cluster := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, cluster.DeepCopy()))).To(Succeed())
		Expect(k8s.Create(ctx, cluster)).To(Succeed())
		bound := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: binding.Subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		}
		Expect(client.IgnoreNotFound(k8s.Delete(ctx, bound.DeepCopy()))).To(Succeed())
		Expect(k8s.Create(ctx, bound)).To(Succeed())
	}
}

// deployOperators deploys, to a namespace, the operators that the demo runs,
// changed by JSON patches of their Deployments. Names get the namespace as a
// suffix, because some of them are the cluster's. Left out is the operator of
// shared volumes: the demo's looks after the whole cluster.
func deployOperators(ctx context.Context, namespace string, patches ...string) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	demo, err := filepath.Rel(folder, repository(".demo", "operators"))
	Expect(err).NotTo(HaveOccurred())
	kustomization := fmt.Sprintf("resources: [%s]\nnamespace: %s\nnameSuffix: -%s\npatches:\n%s", demo, namespace, namespace, withoutSharedVolume)
	if len(patches) > 0 {
		kustomization += "- target: {kind: Deployment}\n  patch: |\n    " + strings.Join(patches, "\n    ") + "\n"
	}
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager="+tester, "-k", folder)
}

const withoutSharedVolume = `- target: {labelSelector: app.kubernetes.io/name=shared-volume-operator}
  patch: |
    $patch: delete
    apiVersion: any
    kind: any
    metadata: {name: any}
`

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

// account is how the audit log names an operator of a namespace.
func account(namespace string) string { return "system:serviceaccount:" + namespace + ":" }
