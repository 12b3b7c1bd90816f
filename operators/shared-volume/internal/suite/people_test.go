package suite

import (
	"context"
	"maps"
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

// TestUninstallWithoutOperator runs the commands of the README.
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
	s.Expect(block).To(HaveLen(2), "the README has the commands")
	environment := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "env")
	out, err := exec.Command("bash", "-euo", "pipefail", "-c", ". "+environment+"\n"+string(block[1])).CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	for _, object := range append(s.driverObjects(), user, claim, bound, cr) {
		s.Eventually(s.gone(object)).Should(BeTrue(), "%T", object)
	}
}

// TestOperatorNeedsNoMoreThanItsRole runs the operator with the rights of its ServiceAccount.
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
	s.Eventually(func() string { return s.eventsOf(cr) }).ShouldNot(BeEmpty(), "the operator may write events")
	s.changesEverything(cr)
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

// changesEverything waits until the operator has changed and repaired its objects.
func (s *scene) changesEverything(cr *storagev1.SharedVolume) {
	s.t.Helper()
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.MountOptions = []storagev1.MountOption{"noatime"} })
	s.Eventually(func() []string { return s.volume(cr).Spec.MountOptions }).Should(ConsistOf("noatime"))
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.Capacity = resource.MustParse("2Gi") })
	s.ready(cr)
	claim, bound := s.bound(cr)
	s.must(s.patch(claim, `{"metadata":{"labels":{"app.kubernetes.io/name":"other"},"ownerReferences":null}}`))
	s.must(s.patch(bound, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`))
	s.Eventually(func() corev1.PersistentVolumeReclaimPolicy { return s.volume(cr).Spec.PersistentVolumeReclaimPolicy }).Should(Equal(corev1.PersistentVolumeReclaimRetain))
	s.Eventually(func() []metav1.OwnerReference { return s.claim(cr).OwnerReferences }).ShouldNot(BeEmpty())

	role := &rbacv1.ClusterRole{ObjectMeta: named("", "asterism-efs-csi-node")}
	s.must(s.patch(role, `{"metadata":{"labels":{"example.org/team":"storage"}},"rules":[]}`)) // the label of an administrator stays
	s.Eventually(func() []rbacv1.PolicyRule { s.must(s.get(role)); return role.Rules }).ShouldNot(BeEmpty())
	s.Expect(role.Labels).To(HaveKey("example.org/team"))
}

// operatorsAccount is a ServiceAccount with the name in the manifests of the operator.
const operatorsAccount = "system:serviceaccount:asterism-storage:asterism-shared-volume-operator"

// permit gives the operator's account the rights in config/rbac, applies the admission
// policies in config/rbac, and waits until they are in effect.
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
	attacker := thief{s, s.as(operatorsAccount)}
	s.Eventually(func() error { return attacker.apply(daemonSetNamed("kube-system", "efs-csi-node")) }).Should(MatchError(ContainSubstring("only in the namespace asterism-efs-csi")))
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func daemonSetNamed(namespace, name string) *appsv1.DaemonSet {
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

func roleFor(resource string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: named("", "asterism-efs-csi-node"),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}},
	}
}

func hostVolume() *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: named("", "root-of-a-node")}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/"}
	return volume
}

// TestStolenTokenReachesNoFurther: with a stolen token of the operator's account, these
// requests are refused.
func TestStolenTokenReachesNoFurther(t *testing.T) {
	s := newDriverScene(t)
	s.permit()
	attacker := thief{s, s.as(operatorsAccount)}
	stolen, apply := attacker.stolen, attacker.apply
	class := &kstoragev1.StorageClass{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}, ObjectMeta: named("", "thiefs"), Provisioner: "thief"}
	pod := &corev1.Pod{ObjectMeta: named(s.namespace, "mine"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}}}

	role := roleFor("nodes") // the role of the driver exists, as in a cluster
	s.must(s.client.Create(s.ctx, role))
	t.Cleanup(func() { s.must(s.client.Delete(context.Background(), role)) })

	attacks := map[string]error{
		"read Secrets":                                             stolen.List(s.ctx, &corev1.SecretList{}),
		"apply a DaemonSet of another name":                        apply(daemonSetNamed("asterism-efs-csi", "mine")),
		"apply the driver's account in another namespace":          apply(account(s.namespace, "efs-csi-node-sa")),
		"apply an account of another name":                         apply(account("asterism-efs-csi", "mine")),
		"create a token of an account":                             stolen.SubResource("token").Create(s.ctx, account("kube-system", "default"), &authenticationv1.TokenRequest{}),
		"bind cluster-admin":                                       apply(bindingTo("mine", "cluster-admin")),
		"bind cluster-admin in the driver's binding":               apply(bindingTo("asterism-efs-csi-node", "cluster-admin")),
		"bind the operator's role to another account":              apply(bindingTo("asterism-efs-csi-node", s.namespace)),
		"bind the driver's role to another account":                apply(bindingTo("asterism-efs-csi-node", "asterism-efs-csi-node")),
		"add a right to the driver's role that the operator lacks": apply(roleFor("secrets")),
		"add a right to the driver's role that the operator has":   apply(roleFor("pods")),
		"apply a volume with the file system of a node":            apply(hostVolume()),
		"delete another namespace":                                 stolen.Delete(s.ctx, &corev1.Namespace{ObjectMeta: named("", s.namespace)}),
		"create a pod":                                             stolen.Create(s.ctx, pod),
		"apply another StorageClass":                               apply(class),
		"create a policy":                                          stolen.Create(s.ctx, &storagev1.SharedVolumePolicy{ObjectMeta: named("", "mine")}),
		"delete all policies":                                      stolen.DeleteAllOf(s.ctx, &storagev1.SharedVolumePolicy{}),
	}
	maps.Copy(attacks, attacker.attacksOnStorage())
	for attack, err := range attacks {
		if apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "resulted in error") { // a rule that fails also refuses
			delete(attacks, attack)
		}
	}
	s.Expect(attacks).To(BeEmpty(), "attacks that are not refused, with their errors")
}

// TestNamespaceOfTheDriverIsReserved: a user with the right to create namespaces cannot
// create the driver's namespace, because its account gets rights to nodes. The operator can:
// see TestOperatorNeedsNoMoreThanItsRole.
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

// bindCluster creates a ClusterRole and binds it to a user.
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

// TestRightsOfEditorsAndViewers: an editor of a namespace needs no further right.
func TestRightsOfEditorsAndViewers(t *testing.T) {
	s := newScene(t)
	for _, role := range enginetest.ReadSamples(t, "../../config/rbac/people.yaml") {
		role.SetName(s.namespace + "-" + role.GetName())
		s.must(s.client.Create(s.ctx, role))
		t.Cleanup(func() { s.must(s.client.Delete(s.ctx, role)) })
	}
	editor, viewer := s.userWith("edit"), s.userWith("view")
	cr := &storagev1.SharedVolume{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "images"}}
	cr.Spec.FileSystemID, cr.Spec.AccessPointID = s.fileSystem, "fsap-00000001"
	s.Eventually(func() error { return editor.Create(s.ctx, cr) }).Should(Succeed(), "roles are aggregated with a delay")
	s.Eventually(func() error { return viewer.Get(s.ctx, client.ObjectKeyFromObject(cr), cr) }).Should(Succeed())
	s.Expect(apierrors.IsForbidden(viewer.Delete(s.ctx, cr))).To(BeTrue())
	elsewhere := cr.DeepCopy()
	elsewhere.Namespace, elsewhere.ResourceVersion = "default", ""
	s.Expect(apierrors.IsForbidden(editor.Create(s.ctx, elsewhere))).To(BeTrue(), "no SharedVolume in another namespace")
	own := s.policy.DeepCopy()
	own.ResourceVersion, own.Name = "", s.namespace+"-own"
	s.Expect(apierrors.IsForbidden(editor.Create(s.ctx, own))).To(BeTrue(), "only administrators create policies")
	s.Expect(apierrors.IsForbidden(editor.List(s.ctx, &storagev1.SharedVolumePolicyList{}))).To(BeTrue(), "only administrators read policies, which name other namespaces")
	s.Expect(apierrors.IsForbidden(editor.Delete(s.ctx, cluster()))).To(BeTrue(), "only administrators delete the SharedVolumeDriver")
	status := cr.DeepCopy()
	s.Expect(apierrors.IsForbidden(editor.Status().Patch(s.ctx, status, client.MergeFrom(cr)))).To(BeTrue(), "only the operator writes the status")
	s.must(editor.Delete(s.ctx, cr))
}

// userWith returns the client of a user with a role in the scene's namespace.
func (s *scene) userWith(role string) client.Client {
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
	c, err := client.New(config, client.Options{Scheme: enginetest.Scheme(s.t, storagev1.AddToScheme)})
	s.must(err)
	return c
}
