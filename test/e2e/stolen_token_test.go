package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// attack is a request with the token of an operator.
type attack struct {
	name string
	try  func(ctx context.Context, api kubernetes.Interface) error
}

// otherNamespace is a namespace that is not handed over to any operator.
const otherNamespace = "kube-system"

// refusedAttacks are the attacks that Kubernetes must refuse for every operator's account.
var refusedAttacks = []attack{
	{"read the Secrets of a namespace that is not handed over", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.CoreV1().Secrets(otherNamespace).List(ctx, metav1.ListOptions{})
		return err
	}},
	{"read the Secrets of the operators", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.CoreV1().Secrets(systemNamespace).List(ctx, metav1.ListOptions{})
		return err
	}},
	{"read every Secret", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
		return err
	}},
	{"run a pod in a namespace that is not handed over", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.CoreV1().Pods(otherNamespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, dryRun)
		return err
	}},
	{"run a DaemonSet in a namespace that is not handed over", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.AppsV1().DaemonSets(otherNamespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}, dryRun)
		return err
	}},
	{"run a command in a pod", func(ctx context.Context, api kubernetes.Interface) error {
		return api.CoreV1().RESTClient().Post().Namespace(demoNamespace).Resource("pods").Name("mariadb-0").SubResource("exec").Param("command", "id").Do(ctx).Error()
	}},
	{"create a token of another account", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.CoreV1().ServiceAccounts(otherNamespace).CreateToken(ctx, "daemon-set-controller", &authenticationv1.TokenRequest{}, dryRun)
		return err
	}},
	{"create the RoleBinding that hands a namespace over", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.RbacV1().RoleBindings(otherNamespace).Create(ctx, bindingFor("asterism-nova-operator"), dryRun)
		return err
	}},
	{"create another RoleBinding in a namespace that is handed over", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.RbacV1().RoleBindings(demoNamespace).Create(ctx, bindingFor("thief"), dryRun)
		return err
	}},
	{"change a RoleBinding that hands a namespace over", func(ctx context.Context, api kubernetes.Interface) (err error) {
		bindings, err := typed.RbacV1().RoleBindings(demoNamespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, binding := range bindings.Items {
			for _, patch := range []string{
				`{"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"thief"}]}`,
				`{"metadata":{"labels":{"thief":"was-here"}}}`,
				`{"metadata":{"annotations":{"thief":"was here"}}}`,
				`{"metadata":{"finalizers":["in-use.asterism.dev/thief"]}}`,
				`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"thief","uid":"0"}]}}`,
			} {
				_, err = api.RbacV1().RoleBindings(demoNamespace).Patch(ctx, binding.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun.DryRun})
				if !apierrors.IsForbidden(err) {
					return fmt.Errorf("RoleBinding %s, %s: %w", binding.Name, patch, err)
				}
			}
		}
		return err
	}},
	{"become the administrator of the cluster", func(ctx context.Context, api kubernetes.Interface) error {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, RoleRef: bindingFor("").RoleRef, Subjects: bindingFor("").Subjects}
		binding.RoleRef.Name = "cluster-admin"
		_, err := api.RbacV1().ClusterRoleBindings().Create(ctx, binding, dryRun)
		return err
	}},
	{"widen the roles of the operators", func(ctx context.Context, api kubernetes.Interface) error {
		widened := []byte(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
		_, err := api.RbacV1().ClusterRoles().Patch(ctx, "asterism-nova-operator", types.MergePatchType, widened, metav1.PatchOptions{DryRun: dryRun.DryRun})
		return err
	}},
	{"delete a namespace", func(ctx context.Context, api kubernetes.Interface) error {
		return api.CoreV1().Namespaces().Delete(ctx, demoNamespace, metav1.DeleteOptions{DryRun: dryRun.DryRun})
	}},
	{"change the operators", func(ctx context.Context, api kubernetes.Interface) error {
		_, err := api.AppsV1().Deployments(systemNamespace).Patch(ctx, "asterism-nova-operator", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{DryRun: dryRun.DryRun})
		return err
	}},
}

const editor = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: e2e-editor}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: e2e-editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: e2e-editor}]
`

// dryRun changes nothing if an attack succeeds.
var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

func bindingFor(name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "asterism-nova-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: "asterism-nova-operator"}},
	}
}

// withTokenOf returns a client with the token of a service account.
func withTokenOf(ctx context.Context, namespace, account string) kubernetes.Interface {
	GinkgoHelper()
	token, err := typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	stolen := rest.AnonymousClientConfig(config)
	stolen.BearerToken = token.Status.Token
	api, err := kubernetes.NewForConfig(stolen)
	Expect(err).NotTo(HaveOccurred())
	return api
}

// stolenTokenSpecs use the token of each of the demo's operators.
func stolenTokenSpecs() {
	It("of an editor of the ControlPlane's namespace on an operator's token are refused", func(ctx SpecContext) {
		apply(ctx, demoNamespace, editor)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "delete", "serviceaccount,rolebinding", "e2e-editor", "--namespace="+demoNamespace)
		})
		asEditor := withTokenOf(ctx, demoNamespace, "e2e-editor")
		_, err := asEditor.CoreV1().Secrets(demoNamespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred(), "the editor's token must be valid")
		for _, operator := range operators(ctx, demoOperators...) {
			_, err := asEditor.CoreV1().ServiceAccounts(operator.Namespace).CreateToken(ctx, operator.Spec.Template.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, dryRun)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", operator.Name, err)
		}
	})

	It("with the token of an operator are refused", func(ctx SpecContext) {
		for _, operator := range operators(ctx, demoOperators...) {
			api := withTokenOf(ctx, operator.Namespace, operator.Spec.Template.Spec.ServiceAccountName)
			_, err := api.CoreV1().Events(operator.Namespace).Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: "thief", Namespace: operator.Namespace},
				InvolvedObject: corev1.ObjectReference{Namespace: operator.Namespace},
			}, dryRun)
			Expect(err).NotTo(HaveOccurred(), "the token of %s must be valid", operator.Name)
			for _, attack := range refusedAttacks {
				err := attack.try(ctx, api)
				Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %s: %v", operator.Name, attack.name, err)
			}
		}
	})
}
