package suite

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	securityv1 "github.com/openshift/api/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/driver"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// These tests have the cluster's only driver, so they are not parallel; the
// parallel tests of the package start when they are over.

var images = driver.Images{Driver: "driver:1", Registrar: "registrar:1", LivenessProbe: "probe:1"}

// nodeOfSuite labels the nodes that a test has made.
const nodeOfSuite = "suite.storage.asterism.dev/node"

// newDriverScene has no driver, and no SharedVolumeDriver.
func newDriverScene(t *testing.T) *scene {
	t.Helper()
	enginetest.InstallCRDs(t, "../../config/crd")
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	s := &scene{
		Gomega: g, t: t, ctx: context.Background(), namespace: enginetest.Namespace(t), fileSystem: "fs-00000042",
		client: enginetest.Client(t, storagev1.AddToScheme, securityv1.Install, apiextensionsv1.AddToScheme),
	}
	definition := constraintsDefinition()
	s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, definition))) // most tests are on a cluster without
	s.Eventually(s.gone(definition)).Should(BeTrue())
	s.removeDriver()
	return s
}

// removeDriver by force, whoever made it.
func (s *scene) removeDriver() {
	s.t.Helper()
	cluster := cluster()
	s.release(cluster)
	var users storagev1.SharedVolumeList // of tests that were killed
	s.must(s.client.List(s.ctx, &users))
	for _, user := range users.Items {
		s.release(&user)
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &user)))
	}
	s.must(s.client.DeleteAllOf(s.ctx, &corev1.Node{}, client.MatchingLabels{nodeOfSuite: "true"}))
	for _, object := range append(s.artefacts(), cluster) {
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, object)))
	}
	for _, object := range append(s.artefacts(), cluster) {
		s.Eventually(s.gone(object)).Should(BeTrue())
	}
}

func constraintsDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "securitycontextconstraints.security.openshift.io"}}
}

func cluster() *storagev1.SharedVolumeDriver {
	return &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
}

func csiDriver() *kstoragev1.CSIDriver {
	return &kstoragev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "efs.csi.aws.com"}}
}

func nodes() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "asterism-efs-csi", Name: "efs-csi-node"}}
}

// artefacts of a cluster without OpenShift's kinds.
func (s *scene) artefacts() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "asterism-efs-csi", Name: "efs-csi-node-sa"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}},
		csiDriver(),
		&kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared-volume"}},
		nodes(),
	}
}

func (s *scene) runDriver(more ...enginetest.Runnable) {
	s.t.Helper()
	everywhere := func(_ *rest.Config, options *ctrl.Options) { options.Cache.DefaultNamespaces = nil }
	s.operator = enginetest.RunWith(s.t, s.namespace, enginetest.Scheme(s.t, storagev1.AddToScheme, securityv1.Install),
		[]enginetest.Option{everywhere}, append(more, driver.New(images))...)
}

func (s *scene) driver(state storagev1.ManagementState) *storagev1.SharedVolumeDriver {
	s.t.Helper()
	cr := cluster()
	cr.Spec.ManagementState = state
	s.must(s.client.Create(s.ctx, cr))
	return cr
}

func (s *scene) manage(cr *storagev1.SharedVolumeDriver, state storagev1.ManagementState) {
	s.t.Helper()
	s.must(s.patch(cr, `{"spec":{"managementState":"`+string(state)+`"}}`))
}

func TestDriverIsInstalledAndKept(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(driver.Singleton{})
	cr := cluster()
	s.Eventually(func() error { return s.get(cr) }).Should(Succeed(), "the operator makes it")
	s.Expect(cr.Spec.ManagementState).To(Equal(storagev1.StateManaged))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.Expect(cr.Status.Driver).To(Equal(&storagev1.InstalledDriver{ManagedBy: "asterism", Image: "driver:1"}))
	for _, object := range s.artefacts() {
		s.Expect(s.get(object)).To(Succeed(), "%T %s", object, object.GetName())
		s.Expect(object.GetOwnerReferences()).To(BeEmpty(), "nothing is garbage if the SharedVolumeDriver goes")
	}
	set := nodes()
	s.must(s.get(set))
	s.Expect(set.Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"kubernetes.io/os": "linux"}))

	// Drift is healed; the DaemonSet keeps its pods.
	s.must(s.patch(set, `{"spec":{"template":{"spec":{"hostNetwork":false,"priorityClassName":"system-cluster-critical"}}}}`))
	s.Eventually(func() bool { s.must(s.get(set)); return set.Spec.Template.Spec.HostNetwork }).Should(BeTrue())
	uid := set.UID
	for _, object := range s.artefacts()[2:6] {
		s.must(s.client.Delete(s.ctx, object))
		s.Eventually(func() bool { return s.get(object) == nil && object.GetDeletionTimestamp() == nil }).Should(BeTrue(), "%T", object)
	}
	object := csiDriver()
	s.must(s.patch(object, `{"spec":{"seLinuxMount":true,"fsGroupPolicy":"File"}}`))
	s.Eventually(func() bool {
		s.must(s.get(object))
		return *object.Spec.SELinuxMount || *object.Spec.FSGroupPolicy == kstoragev1.FileFSGroupPolicy
	}).Should(BeFalse())
	s.must(s.get(set))
	s.Expect(set.UID).To(Equal(uid), "pods are not cut off")

	s.must(s.patch(cr, `{"spec":{"nodeSelector":{"storage":"efs"},"tolerations":[{"key":"infra","operator":"Exists"}]}}`))
	s.Eventually(func() map[string]string { s.must(s.get(set)); return set.Spec.Template.Spec.NodeSelector }).Should(Equal(map[string]string{"storage": "efs"}))
	s.Expect(set.Spec.Template.Spec.Tolerations).To(HaveLen(1))
	s.Expect(set.UID).To(Equal(uid))
}

// TestForeignNamespaceGetsNoRights: the owner of a namespace with the driver's name
// could create the driver's account, and a token of that account.
func TestForeignNamespaceGetsNoRights(t *testing.T) {
	s := newDriverScene(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodes().Namespace}}
	s.must(s.client.Create(s.ctx, namespace.DeepCopy()))
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Installed")).Should(HavePrefix("False Conflict: Namespace asterism-efs-csi exists and was not created by this operator"))
	for _, object := range s.artefacts()[1:] {
		s.Expect(s.gone(object)()).To(BeTrue(), "%T %s", object, object.GetName())
	}
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))

	// The namespace is made again by somebody else while the operator is away.
	s.operator.Stop()
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(func() error { return s.client.Create(s.ctx, namespace.DeepCopy()) }).Should(Succeed())
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}}
	s.Expect(s.get(binding)).To(Succeed(), "the account of that namespace has rights until the operator comes back")
	s.runDriver()
	s.Eventually(s.gone(binding)).Should(BeTrue())
	s.Eventually(s.condition(cr, "Installed")).Should(HavePrefix("False Conflict: Namespace asterism-efs-csi exists"))
	s.Consistently(s.gone(nodes()), "2s").Should(BeTrue(), "no privileged pod runs in that namespace")

	// Rights that an administrator's hand-over would leave are taken back as well.
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Stop()
	s.manage(cr, storagev1.StateUnmanaged)
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(func() error { return s.client.Create(s.ctx, namespace.DeepCopy()) }).Should(Succeed())
	s.runDriver()
	s.Eventually(s.gone(binding)).Should(BeTrue())
	s.manage(cr, storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Installed")).Should(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
}

func TestReplacedWholesale(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Stop()
	class := &kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared-volume"}}
	s.must(s.get(class))
	// An earlier version of this operator had another class: its provisioner
	// cannot be changed.
	earlier := class.DeepCopy()
	earlier.ResourceVersion, earlier.UID, earlier.ManagedFields = "", "", nil
	earlier.Annotations["asterism.dev/applied-hash"] = "earlier"
	earlier.Provisioner = "efs.csi.aws.com"
	s.must(s.client.Delete(s.ctx, class))
	s.must(s.client.Create(s.ctx, earlier))
	s.runDriver()
	s.Eventually(func() string { _ = s.get(class); return class.Provisioner }).Should(Equal("kubernetes.io/no-provisioner"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
}

func TestForeignDriverIsUsed(t *testing.T) {
	s := newDriverScene(t)
	theirs := csiDriver()
	theirs.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	s.must(s.client.Create(s.ctx, theirs))
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.Expect(cr.Status.Driver.ManagedBy).To(Equal("Helm"))
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	user := s.shared("images")
	s.ready(user)
	for _, object := range s.artefacts() {
		if _, isClass := object.(*kstoragev1.StorageClass); object.GetName() != theirs.Name && !isClass {
			s.Expect(s.gone(object)()).To(BeTrue(), "%T %s is not ours to make", object, object.GetName())
		}
	}
	s.Expect(s.get(&kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: volume.StorageClassName}})).To(Succeed(), "it is of SharedVolumes, whosever the driver is")
	version := theirs.ResourceVersion
	s.must(s.get(theirs))
	s.Expect(theirs.ResourceVersion).To(Equal(version), "left alone")
	s.must(s.client.Delete(s.ctx, user))
	s.Eventually(s.gone(user)).Should(BeTrue())
	s.must(s.client.Delete(s.ctx, theirs)) // whoever installed it has gone
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("asterism"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
}

// TestForeignDriverNamesItsManager: who looks after a driver without labels is
// known by its managedFields alone.
func TestForeignDriverNamesItsManager(t *testing.T) {
	s := newDriverScene(t)
	s.must(s.client.Create(s.ctx, csiDriver(), client.FieldOwner("kubectl-create")))
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("kubectl-create"))
}

// TestDriverThatIsReplacedBySomebodyElse: pods have mounted what ours serves.
func TestDriverThatIsReplacedBySomebodyElse(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Stop()
	ours := csiDriver()
	s.must(s.client.Delete(s.ctx, ours))
	theirs := csiDriver()
	theirs.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	s.Eventually(func() error { return s.client.Create(s.ctx, theirs) }).Should(Succeed())
	s.runDriver(volume.Service)
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("Helm"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	for _, object := range s.artefacts() {
		s.must(s.get(object))
		s.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T", object)
	}
	s.manage(cr, storagev1.StateRemoved) // ours
	s.Eventually(s.gone(nodes())).Should(BeTrue())
	s.Eventually(s.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodes().Namespace}})).Should(BeTrue())
	s.Expect(s.get(theirs)).To(Succeed())
	s.Expect(theirs.DeletionTimestamp).To(BeNil())
}

// TestWhatSaysThatItIsTheDrivers: people of a namespace may forge labels and
// finalizers, and do not hold up a removal by that.
func TestWhatSaysThatItIsTheDrivers(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	says := metav1.ObjectMeta{
		Namespace: s.namespace, Name: "z-forged", Finalizers: []string{"suite.storage.asterism.dev/for-ever"},
		Labels:      map[string]string{"asterism.dev/owner-uid": string(cr.UID)},
		Annotations: map[string]string{"asterism.dev/owner": "cluster/" + string(cr.UID)},
	}
	account := &corev1.ServiceAccount{ObjectMeta: says}
	set := &appsv1.DaemonSet{ObjectMeta: *says.DeepCopy()}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	for _, object := range []client.Object{account, set} {
		s.must(s.client.Create(s.ctx, object))
		t.Cleanup(func() { s.release(object); s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, object))) })
	}
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	for _, object := range []client.Object{account, set} {
		s.must(s.get(object))
		s.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T", object)
	}
}

// toldOf an object in events, which are in default for what has no namespace.
func (s *scene) toldOf(obj client.Object) string {
	s.t.Helper()
	var all eventsv1.EventList
	s.must(s.client.List(s.ctx, &all, client.InNamespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))))
	told := ""
	for _, event := range all.Items {
		if event.Regarding.UID == obj.GetUID() {
			told += event.Note + "\n"
		}
	}
	return told
}

func managedBy(cr *storagev1.SharedVolumeDriver) string {
	if cr.Status.Driver == nil {
		return ""
	}
	return cr.Status.Driver.ManagedBy
}

func TestExternalDriverIsAwaited(t *testing.T) {
	s := newDriverScene(t)
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateUnmanaged)
	s.Eventually(s.condition(cr, "Detected")).Should(ContainSubstring("CSIDriver efs.csi.aws.com does not exist: install the driver"))
	theirs := csiDriver()
	s.must(s.client.Create(s.ctx, theirs))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	user := s.shared("images")
	s.ready(user)
	s.must(s.client.Delete(s.ctx, theirs))
	s.Eventually(s.condition(cr, "Detected")).Should(HavePrefix("False"))
	s.Eventually(s.condition(user, "DriverReady")).Should(HavePrefix("False Waiting: the CSI driver efs.csi.aws.com is not installed"))
	s.bound(user) // what there is stays
	s.must(s.client.Delete(s.ctx, user))
	s.Eventually(s.gone(user)).Should(BeTrue())
}

// TestOrphanedVolumes: whoever takes the finalizer of a SharedVolume away leaves a volume
// behind, which is deleted when no claim uses it.
func TestOrphanedVolumes(t *testing.T) {
	s := newDriverScene(t)
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	kept, user := s.shared("kept"), s.shared("images")
	s.ready(kept, user)
	claim, orphan := s.bound(user)
	s.operator.Stop()
	s.release(user)
	s.must(s.client.Delete(s.ctx, user, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	s.Eventually(s.gone(user)).Should(BeTrue())

	s.runDriver(volume.Service)
	s.Eventually(s.condition(cr, "VolumesOwned")).Should(HavePrefix("False Orphaned: the SharedVolumes of 1 bound volumes are gone"))
	s.Expect(cr.Status.OrphanedVolumes).To(Equal(&storagev1.OrphanedVolumes{Names: []string{orphan.Name}, Count: 1}))
	s.bound(user)
	s.must(s.client.Delete(s.ctx, claim))
	s.Eventually(func() bool {
		s.must(s.patch(cr, `{"metadata":{"annotations":{"touched":"`+string(uuid.NewUUID())+`"}}}`))
		return s.gone(orphan)()
	}).Should(BeTrue())
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.Expect(cr.Status.OrphanedVolumes).To(BeNil())
	s.bound(kept)
	s.must(s.client.Delete(s.ctx, kept))
	s.Eventually(s.gone(kept)).Should(BeTrue())
}

// TestHandOver to somebody else: what was installed stays, and is left alone.
func TestHandOver(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.manage(cr, storagev1.StateUnmanaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Requests.Reset()
	object := csiDriver()
	s.must(s.patch(object, `{"spec":{"seLinuxMount":true}}`))
	s.manage(cr, storagev1.StateUnmanaged)
	s.must(s.patch(cr, `{"spec":{"nodeSelector":{"a":"b"}}}`))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.must(s.get(object))
	s.Expect(*object.Spec.SELinuxMount).To(BeTrue())
	for _, write := range s.operator.Requests.Writes() {
		s.Expect(write.Resource).To(Equal("sharedvolumedrivers"))
	}
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	for _, object := range s.artefacts() {
		if _, isClass := object.(*kstoragev1.StorageClass); isClass {
			s.Expect(s.gone(object)()).To(BeTrue(), "it is of SharedVolumes, whosever the driver is, and would be in the way of another SharedVolumeDriver")
			continue
		}
		s.Expect(s.get(object)).To(Succeed(), "%T %s", object, object.GetName())
		s.Expect(object.GetDeletionTimestamp()).To(BeNil())
	}
}

func TestRemovalWaitsForSharedVolumes(t *testing.T) {
	for name, remove := range map[string]func(*scene, *storagev1.SharedVolumeDriver){
		"Removed": func(s *scene, cr *storagev1.SharedVolumeDriver) { s.manage(cr, storagev1.StateRemoved) },
		"deleted": func(s *scene, cr *storagev1.SharedVolumeDriver) { s.must(s.client.Delete(s.ctx, cr)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newDriverScene(t)
			s.runDriver(volume.Service)
			cr := s.driver(storagev1.StateManaged)
			s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
			user := s.shared("images")
			s.ready(user)
			remove(s, cr)
			s.Eventually(s.condition(cr, "Ready")).Should(And(HavePrefix("False InUse"), ContainSubstring("the driver is used by a SharedVolume: see status.usedBy")))
			s.Expect(cr.Status.UsedBy).To(Equal(&storagev1.DriverUsers{SharedVolumes: []string{s.namespace + "/images"}, Count: 1}))
			for _, object := range s.artefacts() {
				s.must(s.get(object))
				s.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T", object)
			}
			s.bound(user)
			s.pass(user)
			s.ready(user) // who has it keeps it
			var late []*storagev1.SharedVolume
			for i := range 11 {
				late = append(late, s.shared(fmt.Sprintf("late-%02d", i)))
			}
			for _, cr := range late {
				s.Eventually(s.condition(cr, "DriverReady")).Should(HavePrefix("False Waiting: the CSI driver efs.csi.aws.com is to be removed"), "no new one begins")
				s.Expect(enginetest.Conditions(cr)).NotTo(ContainSubstring("images"), "what others have")
			}
			s.Eventually(s.condition(cr, "Ready")).Should(ContainSubstring("the driver is used by 12 SharedVolumes"))
			s.Expect(cr.Status.UsedBy.Count).To(BeEquivalentTo(12))
			s.Expect(cr.Status.UsedBy.SharedVolumes).To(HaveLen(10))
			s.Eventually(func() string { return s.toldOf(cr) }).Should(ContainSubstring("the driver is used by"))
			s.Expect(s.toldOf(cr)).NotTo(ContainSubstring(s.namespace), "events of what has no namespace are in default, for many to read")
			for _, cr := range append(late, user) {
				s.must(s.client.Delete(s.ctx, cr))
			}
			for _, object := range s.artefacts() {
				s.Eventually(s.gone(object)).Should(BeTrue(), "%T", object)
			}
			if name == "Removed" {
				s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("False Removed: nothing is installed"))
				s.manage(cr, storagev1.StateManaged)
				s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
			} else {
				s.Eventually(s.gone(cr)).Should(BeTrue())
			}
		})
	}
}

// TestRolloutTouchesNoSharedVolume: nodes come and go, and where the driver runs is
// changed.
func TestRolloutTouchesNoSharedVolume(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	user := s.shared("images")
	s.ready(user)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.pass(user)
	s.operator.Requests.Reset()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{
		"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", nodeOfSuite: "true",
	}}}
	s.must(s.client.Create(s.ctx, node))
	s.t.Cleanup(s.removeDriver)
	s.must(s.patch(cr, `{"spec":{"nodeSelector":{"kubernetes.io/arch":"amd64"}}}`))
	s.Eventually(s.condition(cr, "RolledOut")).Should(HavePrefix("False Progressing: DaemonSet efs-csi-node"))
	s.Expect(s.condition(cr, "Installed")()).To(HavePrefix("True"))
	s.Eventually(func() int32 { s.must(s.get(cr)); return cr.Status.Nodes.Desired }).Should(BeEquivalentTo(1))
	s.ready(user)
	for _, write := range s.operator.Requests.Writes() {
		s.Expect(write.Resource).To(BeElementOf("sharedvolumedrivers", "daemonsets"), write.String())
	}
	s.must(s.client.Delete(s.ctx, user))
	s.Eventually(s.gone(user)).Should(BeTrue())
}

// TestOnOpenShift: the constraints are made, and nothing is written at rest.
func TestOnOpenShift(t *testing.T) {
	s := newDriverScene(t)
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	s.must(err)
	enginetest.InstallCRDs(t, filepath.Join(strings.TrimSpace(string(out)), "security", "v1", "zz_generated.crd-manifests"))
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	constraints := &securityv1.SecurityContextConstraints{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}}
	s.must(s.get(constraints))
	s.Expect(constraints.Users).To(Equal([]string{"system:serviceaccount:asterism-efs-csi:efs-csi-node-sa"}))
	set := nodes()
	s.must(s.get(set))
	s.Expect(set.Spec.Template.Spec.NodeSelector).To(HaveKey("node-role.kubernetes.io/worker"))
	s.operator.Requests.Reset()
	s.must(s.patch(constraints, `{"users":["somebody"]}`))
	s.Eventually(func() []string { s.must(s.get(constraints)); return constraints.Users }).Should(HaveLen(1))
	s.Eventually(func() string { s.must(s.get(constraints)); return constraints.Users[0] }).ShouldNot(Equal("somebody"))
	s.Expect(s.operator.Requests.Of("apply", "securitycontextconstraints")).To(HaveLen(1))
	s.manage(cr, storagev1.StateRemoved)
	s.Eventually(s.gone(constraints)).Should(BeTrue())
}
