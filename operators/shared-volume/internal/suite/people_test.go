package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	securityv1 "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/driver"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// TestUninstallWithoutOperator types what the README says.
func TestUninstallWithoutOperator(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	user := s.shared("images")
	s.ready(user)
	claim, bound := s.bound(user)
	s.operator.Stop()
	readme, err := os.ReadFile("../../README.md")
	s.must(err)
	block := regexp.MustCompile("(?s)```bash without-operator\n(.*?)```").FindSubmatch(readme)
	s.Expect(block).To(HaveLen(2), "the README's commands")
	environment := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "env")
	out, err := exec.Command("bash", "-euo", "pipefail", "-c", ". "+environment+"\n"+string(block[1])).CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	for _, object := range append(s.driverObjects(), user, claim, bound, cr) {
		s.Eventually(s.gone(object)).Should(BeTrue(), "%T", object)
	}
}

// TestOperatorNeedsNoMoreThanItsRole runs everything as its ServiceAccount would.
func TestOperatorNeedsNoMoreThanItsRole(t *testing.T) {
	s := newDriverScene(t)
	s.permit()
	options := []enginetest.Option{func(config *rest.Config, options *ctrl.Options) {
		config.Impersonate = rest.ImpersonationConfig{UserName: operatorsAccount}
		options.Cache.DefaultNamespaces = nil
	}}
	s.operator = enginetest.RunWith(t, s.namespace, enginetest.Scheme(t, storagev1.AddToScheme, securityv1.Install), options,
		volume.Service, volume.Grants, driver.New(images), driver.Singleton{})
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	cr := s.shared("images")
	s.ready(cr)
	s.Eventually(func() string { return s.eventsOf(cr) }).ShouldNot(BeEmpty(), "it may write events")
	s.pod("web")
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(func() *storagev1.Blockers { s.must(s.get(cr)); return cr.Status.BlockedBy }).ShouldNot(BeNil())
	s.must(s.client.DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.GracePeriodSeconds(0)))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.must(s.client.Delete(s.ctx, cluster()))
	s.Eventually(s.gone(cluster())).Should(BeTrue())
	for _, request := range s.operator.Requests.All() {
		s.Expect(request.Status).NotTo(Equal(403), request.String())
	}
}

// operatorsAccount is a ServiceAccount of the name that the operator's manifests have.
const operatorsAccount = "system:serviceaccount:asterism-storage:asterism-shared-volume-operator"

// permit gives the operator's account the rights in config/rbac, and bounds them as
// config/rbac does.
func (s *scene) permit() {
	s.t.Helper()
	s.bindCluster(enginetest.ReadSample(s.t, "../../config/rbac/role.yaml", "ClusterRole"), s.namespace, operatorsAccount)
	for _, object := range enginetest.ReadSamples(s.t, "../../config/rbac/admission.yaml") {
		object.SetName(s.namespace + "-" + object.GetName())
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			s.must(unstructured.SetNestedField(object.Object, object.GetName(), "spec", "policyName"))
		}
		s.must(s.client.Create(s.ctx, object))
		s.t.Cleanup(func() { s.must(s.client.Delete(context.Background(), object)) })
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func daemons(namespace, name string) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: named(namespace, name)}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	return set
}

func account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: named(namespace, name)}
}

func bindingTo(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: named("", name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "thief"}},
	}
}

func roleFor(kind string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: named("", "asterism-efs-csi-node"),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{kind}, Verbs: []string{"list"}}},
	}
}

func hostVolume() *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: named("", "root-of-a-node")}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/"}
	return volume
}

// TestStolenTokenReachesNoFurther: a thief of the token of the operator's account can
// do what the operator does, and nothing of this.
func TestStolenTokenReachesNoFurther(t *testing.T) {
	s := newDriverScene(t)
	s.permit()
	thief := s.as(operatorsAccount)
	apply := func(object client.Object) error {
		return thief.Patch(s.ctx, object, client.Apply, client.FieldOwner("thief"), client.ForceOwnership) //nolint:staticcheck // typed objects will do
	}
	class := &kstoragev1.StorageClass{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}, ObjectMeta: named("", "thiefs"), Provisioner: "thief"}
	pod := &corev1.Pod{ObjectMeta: named(s.namespace, "mine"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}

	role := roleFor("nodes") // the driver's, as it is on a cluster
	s.must(s.client.Create(s.ctx, role))
	t.Cleanup(func() { s.must(s.client.Delete(context.Background(), role)) })

	// The policy takes a moment until it is in effect.
	s.Eventually(func() error { return apply(daemons("kube-system", "efs-csi-node")) }).Should(MatchError(ContainSubstring("namespace asterism-efs-csi alone")))
	for attack, err := range map[string]error{
		"read Secrets":                                 thief.List(s.ctx, &corev1.SecretList{}),
		"a DaemonSet of another name":                  apply(daemons("asterism-efs-csi", "mine")),
		"the driver's account in another namespace":    apply(account(s.namespace, "efs-csi-node-sa")),
		"an account of another name":                   apply(account("asterism-efs-csi", "mine")),
		"a token of an account":                        thief.SubResource("token").Create(s.ctx, account("kube-system", "default"), &authenticationv1.TokenRequest{}),
		"become cluster-admin":                         apply(bindingTo("mine", "cluster-admin")),
		"become cluster-admin by the driver's name":    apply(bindingTo("asterism-efs-csi-node", "cluster-admin")),
		"the operator's rights for an account of mine": apply(bindingTo("asterism-efs-csi-node", s.namespace)),
		"the driver's rights for an account of mine":   apply(bindingTo("asterism-efs-csi-node", "asterism-efs-csi-node")),
		"rights that it lacks in the driver's role":    apply(roleFor("secrets")),
		"rights that it has in the driver's role":      apply(roleFor("pods")),
		"the file system of a node":                    apply(hostVolume()),
		"delete another namespace":                     thief.Delete(s.ctx, &corev1.Namespace{ObjectMeta: named("", s.namespace)}),
		"a pod":                                        thief.Create(s.ctx, pod),
		"another StorageClass":                         apply(class),
		"a policy":                                     thief.Create(s.ctx, &storagev1.SharedVolumePolicy{ObjectMeta: named("", "mine")}),
		"no policies":                                  thief.DeleteAllOf(s.ctx, &storagev1.SharedVolumePolicy{}),
	} {
		s.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", attack, err)
	}
}

// TestNamespaceOfTheDriverIsReserved for the operator, which TestOperatorNeedsNoMoreThanItsRole
// runs under the same policy: accounts of that namespace get rights to nodes.
func TestNamespaceOfTheDriverIsReserved(t *testing.T) {
	s := newDriverScene(t)
	s.permit()
	creator := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"namespaces"}, "verbs": []any{"create"}},
			map[string]any{"apiGroups": []any{"storage.asterism.dev"}, "resources": []any{"sharedvolumedrivers"}, "verbs": []any{"list"}},
		},
	}}
	s.bindCluster(creator, s.namespace+"-creator", "creator")
	create := func(name string) error {
		return s.as("creator").Create(s.ctx, &corev1.Namespace{ObjectMeta: named("", name)}, client.DryRunAll)
	}
	s.Eventually(func() error { return create("asterism-efs-csi") }).Should(MatchError(ContainSubstring("is reserved for the CSI driver")))
	s.must(create(s.namespace + "-2"))
}

// bindCluster gives the rules of a role to a user.
func (s *scene) bindCluster(role *unstructured.Unstructured, name, user string) {
	s.t.Helper()
	role.SetName(name)
	s.must(s.client.Create(s.ctx, role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	s.must(s.client.Create(s.ctx, binding))
	s.t.Cleanup(func() {
		s.must(s.client.Delete(context.Background(), binding))
		s.must(s.client.Delete(context.Background(), role))
	})
	bound := s.as(user)
	s.Eventually(func() error { return bound.List(s.ctx, &storagev1.SharedVolumeDriverList{}) }).Should(Succeed(), "the binding is in effect")
}

// TestWhatPeopleMay: an editor of a namespace needs nothing but that.
func TestWhatPeopleMay(t *testing.T) {
	s := newScene(t)
	for _, role := range enginetest.ReadSamples(t, "../../config/rbac/people.yaml") {
		role.SetName(s.namespace + "-" + role.GetName())
		s.must(s.client.Create(s.ctx, role))
		t.Cleanup(func() { s.must(s.client.Delete(s.ctx, role)) })
	}
	editor, viewer := s.person("edit"), s.person("view")
	cr := &storagev1.SharedVolume{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "images"}}
	cr.Spec.FileSystemID, cr.Spec.AccessPointID = s.fileSystem, "fsap-00000001"
	s.Eventually(func() error { return editor.Create(s.ctx, cr) }).Should(Succeed(), "roles are aggregated with a delay")
	s.Eventually(func() error { return viewer.Get(s.ctx, client.ObjectKeyFromObject(cr), cr) }).Should(Succeed())
	s.Expect(apierrors.IsForbidden(viewer.Delete(s.ctx, cr))).To(BeTrue())
	elsewhere := cr.DeepCopy()
	elsewhere.Namespace, elsewhere.ResourceVersion = "default", ""
	s.Expect(apierrors.IsForbidden(editor.Create(s.ctx, elsewhere))).To(BeTrue(), "in another namespace")
	own := s.policy.DeepCopy()
	own.ResourceVersion, own.Name = "", s.namespace+"-own"
	s.Expect(apierrors.IsForbidden(editor.Create(s.ctx, own))).To(BeTrue(), "a policy is the administrator's")
	s.Expect(apierrors.IsForbidden(editor.List(s.ctx, &storagev1.SharedVolumePolicyList{}))).To(BeTrue(), "and tells of others")
	s.Expect(apierrors.IsForbidden(editor.Delete(s.ctx, cluster()))).To(BeTrue(), "and so is the driver")
	status := cr.DeepCopy()
	s.Expect(apierrors.IsForbidden(editor.Status().Patch(s.ctx, status, client.MergeFrom(cr)))).To(BeTrue(), "the status is the operator's")
	s.must(editor.Delete(s.ctx, cr))
}

// person who has a role in the scene's namespace.
func (s *scene) person(role string) client.Client {
	s.t.Helper()
	name := strings.Join([]string{s.namespace, role}, "-")
	s.must(s.client.Create(s.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	return s.as(name)
}

func (s *scene) as(user string) client.Client {
	s.t.Helper()
	config := enginetest.Config(s.t)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	person, err := client.New(config, client.Options{Scheme: enginetest.Scheme(s.t, storagev1.AddToScheme)})
	s.must(err)
	return person
}
