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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	for _, object := range append(s.artefacts(), user, claim, bound, cr) {
		s.Eventually(s.gone(object)).Should(BeTrue(), "%T", object)
	}
}

// TestOperatorNeedsNoMoreThanItsRole runs everything as its ServiceAccount would.
func TestOperatorNeedsNoMoreThanItsRole(t *testing.T) {
	s := newDriverScene(t)
	role := enginetest.ReadSample(t, "../../config/rbac/role.yaml", "ClusterRole")
	const user = "shared-volume-operator"
	s.bindCluster(role, user)
	options := []enginetest.Option{func(config *rest.Config, options *ctrl.Options) {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		options.Cache.DefaultNamespaces = nil
	}}
	s.operator = enginetest.RunWith(t, s.namespace, enginetest.Scheme(t, storagev1.AddToScheme, securityv1.Install), options,
		volume.Service, driver.New(images), driver.Singleton{})
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	cr := s.shared("images")
	s.ready(cr)
	s.Eventually(func() string { return s.toldOf(cr) }).ShouldNot(BeEmpty(), "it may write events")
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

// bindCluster gives the rules of a role to a user, under a name of the test's.
func (s *scene) bindCluster(role *unstructured.Unstructured, user string) {
	s.t.Helper()
	role.SetName(s.namespace)
	s.must(s.client.Create(s.ctx, role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.namespace},
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
