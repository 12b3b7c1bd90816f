package suite

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// A cluster has one driver, so the tests of this file are not parallel. The parallel tests
// of the package start after them.

var images = driver.Images{Driver: "driver:1", Registrar: "registrar:1", LivenessProbe: "probe:1"}

// nodeOfSuite is a label of the nodes that a test has created.
const nodeOfSuite = "suite.storage.asterism.dev/node"

// newDriverScene returns a scene without a driver and without a SharedVolumeDriver.
func newDriverScene(t *testing.T) *scene {
	t.Helper()
	s := emptyScene(t, "fs-00000042", securityv1.Install, apiextensionsv1.AddToScheme)
	definition := constraintsDefinition()
	s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, definition))) // most tests need a cluster without SecurityContextConstraints
	s.Eventually(s.gone(definition)).Should(BeTrue())
	s.removeDriver()
	return s
}

// removeDriver deletes every driver and its users, without their finalizers.
func (s *scene) removeDriver() {
	s.t.Helper()
	cluster := cluster()
	s.release(cluster)
	var users storagev1.SharedVolumeList // remains of tests that were killed
	s.must(s.client.List(s.ctx, &users))
	for _, user := range users.Items {
		s.release(&user)
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &user)))
	}
	s.must(s.client.DeleteAllOf(s.ctx, &corev1.Node{}, client.MatchingLabels{nodeOfSuite: "true"}))
	for _, object := range append(s.driverObjects(), cluster) {
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, object)))
	}
	for _, object := range append(s.driverObjects(), cluster) {
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

func daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "asterism-efs-csi", Name: "efs-csi-node"}}
}

// driverObjects are the objects of a driver in a cluster without OpenShift's kinds.
func (s *scene) driverObjects() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "asterism-efs-csi", Name: "efs-csi-node-sa"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}},
		csiDriver(),
		&kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared-volume"}},
		daemonSet(),
	}
}

func (s *scene) runDriver(more ...enginetest.Runnable) {
	s.t.Helper()
	allNamespaces := func(_ *rest.Config, options *ctrl.Options) { options.Cache.DefaultNamespaces = nil }
	s.operator = enginetest.RunWith(s.t, s.namespace, enginetest.Scheme(s.t, storagev1.AddToScheme, securityv1.Install),
		[]enginetest.Option{allNamespaces}, append(more, driver.New(images))...)
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

func TestDriverIsInstalledAndCorrected(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(driver.Singleton{})
	cr := cluster()
	s.Eventually(func() error { return s.get(cr) }).Should(Succeed(), "the operator creates SharedVolumeDriver cluster")
	s.Expect(cr.Spec.ManagementState).To(Equal(storagev1.StateManaged))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.Expect(cr.Status.Driver).To(Equal(&storagev1.InstalledDriver{ManagedBy: "asterism", Image: "driver:1"}))
	for _, object := range s.driverObjects() {
		s.Expect(s.get(object)).To(Succeed(), "%T %s", object, object.GetName())
		s.Expect(object.GetOwnerReferences()).To(BeEmpty(), "garbage collection deletes nothing with the SharedVolumeDriver")
	}
	set := daemonSet()
	s.must(s.get(set))
	s.Expect(set.Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"kubernetes.io/os": "linux"}))

	// Changes by others are corrected, and the DaemonSet is not recreated.
	s.must(s.patch(set, `{"spec":{"template":{"spec":{"hostNetwork":false,"priorityClassName":"system-cluster-critical"}}}}`))
	s.Eventually(func() bool { s.must(s.get(set)); return set.Spec.Template.Spec.HostNetwork }).Should(BeTrue())
	uid := set.UID
	for _, object := range s.driverObjects()[2:6] {
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
	s.Expect(set.UID).To(Equal(uid), "the DaemonSet is not recreated")

	s.must(s.patch(cr, `{"spec":{"nodeSelector":{"storage":"efs"},"tolerations":[{"key":"infra","operator":"Exists"}]}}`))
	s.Eventually(func() map[string]string { s.must(s.get(set)); return set.Spec.Template.Spec.NodeSelector }).Should(Equal(map[string]string{"storage": "efs"}))
	s.Expect(set.Spec.Template.Spec.Tolerations).To(HaveLen(1))
	s.Expect(set.UID).To(Equal(uid))
}

// TestForeignNamespaceGetsNoRights: the owner of a namespace with the driver's name
// could create the driver's account, and a token of that account.
func TestForeignNamespaceGetsNoRights(t *testing.T) {
	s := newDriverScene(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: daemonSet().Namespace}}
	s.must(s.client.Create(s.ctx, namespace.DeepCopy()))
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Installed")).Should(HavePrefix("False Conflict: Namespace asterism-efs-csi exists and was not created by this operator"))
	for _, object := range s.driverObjects()[1:] {
		s.Expect(s.gone(object)()).To(BeTrue(), "%T %s", object, object.GetName())
	}
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))

	// Another owner recreates the namespace while no operator runs.
	s.operator.Stop()
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(func() error { return s.client.Create(s.ctx, namespace.DeepCopy()) }).Should(Succeed())
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "asterism-efs-csi-node"}}
	s.Expect(s.get(binding)).To(Succeed(), "the account of that namespace has rights until the operator runs again")
	s.runDriver()
	s.Eventually(s.gone(binding)).Should(BeTrue())
	s.Eventually(s.condition(cr, "Installed")).Should(HavePrefix("False Conflict: Namespace asterism-efs-csi exists"))
	s.Consistently(s.gone(daemonSet()), "2s").Should(BeTrue(), "no privileged pod runs in that namespace")

	// Misplaced rights are also deleted while managementState is Unmanaged.
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

func TestImmutableFieldIsReplaced(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Stop()
	class := &kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "shared-volume"}}
	s.must(s.get(class))
	// The class of a former version of this operator has another provisioner, which is
	// immutable.
	former := class.DeepCopy()
	former.ResourceVersion, former.UID, former.ManagedFields = "", "", nil
	former.Annotations["asterism.dev/applied-hash"] = "former"
	former.Provisioner = "efs.csi.aws.com"
	s.must(s.client.Delete(s.ctx, class))
	s.must(s.client.Create(s.ctx, former))
	s.runDriver()
	s.Eventually(func() string { _ = s.get(class); return class.Provisioner }).Should(Equal("kubernetes.io/no-provisioner"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
}

func TestForeignDriverIsUsed(t *testing.T) {
	s := newDriverScene(t)
	foreign := csiDriver()
	foreign.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	s.must(s.client.Create(s.ctx, foreign))
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.Expect(cr.Status.Driver.ManagedBy).To(Equal("Helm"))
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	user := s.shared("images")
	s.ready(user)
	for _, object := range s.driverObjects() {
		if _, isClass := object.(*kstoragev1.StorageClass); object.GetName() != foreign.Name && !isClass {
			s.Expect(s.gone(object)()).To(BeTrue(), "%T %s is not created beside the driver of another owner", object, object.GetName())
		}
	}
	s.Expect(s.get(&kstoragev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: volume.StorageClassName}})).To(Succeed(), "SharedVolumes need the StorageClass with every driver")
	version := foreign.ResourceVersion
	s.must(s.get(foreign))
	s.Expect(foreign.ResourceVersion).To(Equal(version), "the operator does not write it")
	s.must(s.client.Delete(s.ctx, user))
	s.Eventually(s.gone(user)).Should(BeTrue())
	s.must(s.client.Delete(s.ctx, foreign)) // the other owner removes its driver
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("asterism"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
}

// TestForeignDriverNamesItsManager: without labels, managedFields identify the owner of the
// driver.
func TestForeignDriverNamesItsManager(t *testing.T) {
	s := newDriverScene(t)
	s.must(s.client.Create(s.ctx, csiDriver(), client.FieldOwner("kubectl-create")))
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("kubectl-create"))
}

// TestDriverReplacedByAnotherOwner: the installed objects stay, because pods have mounted
// volumes.
func TestDriverReplacedByAnotherOwner(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	s.operator.Stop()
	s.must(s.client.Delete(s.ctx, csiDriver()))
	foreign := csiDriver()
	foreign.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	s.Eventually(func() error { return s.client.Create(s.ctx, foreign) }).Should(Succeed())
	s.runDriver(volume.Service)
	s.Eventually(func() string { s.must(s.get(cr)); return managedBy(cr) }).Should(Equal("Helm"))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	for _, object := range s.driverObjects() {
		s.must(s.get(object))
		s.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T", object)
	}
	s.manage(cr, storagev1.StateRemoved) // removes only the objects of this operator
	s.Eventually(s.gone(daemonSet())).Should(BeTrue())
	s.Eventually(s.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: daemonSet().Namespace}})).Should(BeTrue())
	s.Expect(s.get(foreign)).To(Succeed())
	s.Expect(foreign.DeletionTimestamp).To(BeNil())
}

// TestForgedChildOfTheDriver: users of a namespace can forge labels and annotations. Their
// objects do not delay the removal of the driver by finalizers, and are not deleted.
func TestForgedChildOfTheDriver(t *testing.T) {
	s := newDriverScene(t)
	s.runDriver()
	cr := s.driver(storagev1.StateManaged)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	forged := metav1.ObjectMeta{
		Namespace: s.namespace, Name: "z-forged", Finalizers: []string{"suite.storage.asterism.dev/never-removed"},
		Labels:      map[string]string{"asterism.dev/owner-uid": string(cr.UID)},
		Annotations: map[string]string{"asterism.dev/owner": "cluster/" + string(cr.UID)},
	}
	account := &corev1.ServiceAccount{ObjectMeta: forged}
	set := &appsv1.DaemonSet{ObjectMeta: *forged.DeepCopy()}
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

// eventsOf returns the notes of the events about an object. The events of an object without
// a namespace are in namespace default.
func (s *scene) eventsOf(obj client.Object) string {
	s.t.Helper()
	var all eventsv1.EventList
	s.must(s.client.List(s.ctx, &all, client.InNamespace(cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault))))
	notes := ""
	for _, event := range all.Items {
		if event.Regarding.UID == obj.GetUID() {
			notes += event.Note + "\n"
		}
	}
	return notes
}

func managedBy(cr *storagev1.SharedVolumeDriver) string {
	if cr.Status.Driver == nil {
		return ""
	}
	return cr.Status.Driver.ManagedBy
}

func TestUnmanagedWaitsForTheDriver(t *testing.T) {
	s := newDriverScene(t)
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	s.runDriver(volume.Service)
	cr := s.driver(storagev1.StateUnmanaged)
	s.Eventually(s.condition(cr, "Detected")).Should(ContainSubstring("CSIDriver efs.csi.aws.com does not exist: install the driver"))
	foreign := csiDriver()
	s.must(s.client.Create(s.ctx, foreign))
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"))
	user := s.shared("images")
	s.ready(user)
	s.must(s.client.Delete(s.ctx, foreign))
	s.Eventually(s.condition(cr, "Detected")).Should(HavePrefix("False"))
	s.Eventually(s.condition(user, "DriverReady")).Should(HavePrefix("False Waiting: the CSI driver efs.csi.aws.com is not installed"))
	s.bound(user) // the claim stays
	s.must(s.client.Delete(s.ctx, user))
	s.Eventually(s.gone(user)).Should(BeTrue())
}

// TestOrphanedVolumes: after a manual removal of its finalizer, a SharedVolume leaves a
// volume, which is deleted when no claim uses it.
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
	s.Expect(cr.Status.UsedBy).To(BeNil(), "the driver is not to be removed")
	s.bound(kept)
	s.must(s.client.Delete(s.ctx, kept))
	s.Eventually(s.gone(kept)).Should(BeTrue())
}

// TestUnmanagedLeavesTheDriver: the installed objects stay and are not changed.
func TestUnmanagedLeavesTheDriver(t *testing.T) {
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
	for _, object := range s.driverObjects() {
		if _, isClass := object.(*kstoragev1.StorageClass); isClass {
			s.Expect(s.gone(object)()).To(BeTrue(), "the StorageClass would be a conflict for another SharedVolumeDriver")
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
			s.Eventually(s.condition(cr, "Ready")).Should(And(HavePrefix("False InUse"), ContainSubstring("the driver is used by a SharedVolume: delete the SharedVolume in status.usedBy")))
			s.Expect(cr.Status.UsedBy).To(Equal(&storagev1.DriverUsers{SharedVolumes: []string{s.namespace + "/images"}, Count: 1}))
			for _, object := range s.driverObjects() {
				s.must(s.get(object))
				s.Expect(object.GetDeletionTimestamp()).To(BeNil(), "%T", object)
			}
			s.bound(user)
			s.pass(user)
			s.ready(user) // an existing claim stays
			var late []*storagev1.SharedVolume
			for i := range 11 {
				late = append(late, s.shared(fmt.Sprintf("late-%02d", i)))
			}
			for _, cr := range late {
				s.Eventually(s.condition(cr, "DriverReady")).Should(HavePrefix("False Waiting: the CSI driver efs.csi.aws.com is to be removed"), "no new SharedVolume gets a claim")
				s.Expect(enginetest.Conditions(cr)).NotTo(ContainSubstring("images"), "the message names no other SharedVolume")
			}
			s.Eventually(s.condition(cr, "Ready")).Should(ContainSubstring("the driver is used by 12 SharedVolumes"))
			s.Expect(cr.Status.UsedBy.Count).To(BeEquivalentTo(12))
			s.Expect(cr.Status.UsedBy.SharedVolumes).To(HaveLen(10))
			s.Eventually(func() string { return s.eventsOf(cr) }).Should(ContainSubstring("the driver is used by"))
			s.Expect(s.eventsOf(cr)).NotTo(ContainSubstring(s.namespace), "events in namespace default can be read by many users")
			for _, cr := range append(late, user) {
				s.must(s.client.Delete(s.ctx, cr))
			}
			for _, object := range s.driverObjects() {
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

// TestRolloutWritesNoSharedVolume when a node is added or nodeSelector changes.
func TestRolloutWritesNoSharedVolume(t *testing.T) {
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

// TestOnOpenShift: the SecurityContextConstraints are created, and a change is corrected with
// one write.
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
	set := daemonSet()
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
