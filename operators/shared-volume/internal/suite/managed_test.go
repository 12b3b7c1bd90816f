package suite

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/efs"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/efs/efstest"
	"asterism.dev/operators/shared-volume/internal/filesystem"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// managedScene has a policy with managed access points, and a server of EFS.
type managedScene struct {
	*scene
	efs *efstest.Proxy
}

func newManaged(t *testing.T, most int32) managedScene {
	t.Helper()
	m := managedScene{newScene(t), efstest.Start(t)}
	m.fileSystem = storagev1.FileSystemID(m.efs.NewFileSystem(t))
	m.region(`{"region":"eu-central-1"}`)
	m.must(m.patch(m.policy, fmt.Sprintf(`{"spec":{"fileSystems":[{"fileSystemID":%q,"accessPoints":"Managed","managed":{"maxPerNamespace":%d}}]}}`, m.fileSystem, most)))
	return m
}

// start runs the operator.
func (m managedScene) start(options ...enginetest.Option) {
	m.t.Helper()
	m.runServices(options, []enginetest.Runnable{volume.New(m.efs.Connector(m.t))})
}

func (m managedScene) create(name string) *storagev1.SharedVolume {
	m.t.Helper()
	return m.shared(name, func(cr *storagev1.SharedVolume) { cr.Spec.AccessPointID = "" })
}

// points returns the paths of the access points by their IDs.
func (m managedScene) points() map[string]string {
	m.t.Helper()
	paths := map[string]string{}
	for _, point := range m.efs.Points(m.t, string(m.fileSystem)) {
		paths[*point.AccessPointId] = *point.RootDirectory.Path
	}
	return paths
}

func TestManagedAccessPoint(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.start()
	cr := m.create("images")
	m.ready(cr)
	m.Expect(m.efs.Calls()).To(Equal([]string{"DescribeAccessPoints", "CreateAccessPoint"}))
	m.Expect(m.points()).To(HaveKeyWithValue(cr.Status.ManagedAccessPointID, And(HavePrefix("/asterism/"+m.namespace[:10]), HaveSuffix("/images"))))
	m.Expect(cr.Status.AccessPointID).To(Equal(cr.Status.ManagedAccessPointID))
	m.Expect(m.volume(cr).Spec.CSI.VolumeHandle).To(Equal(string(m.fileSystem) + "::" + cr.Status.ManagedAccessPointID))

	m.operator.Stop() // at rest, a new process makes one call for an access point
	m.efs.Fail(nil)
	m.start()
	m.Eventually(m.efs.Calls).Should(Equal([]string{"DescribeAccessPoints"}))
	m.pass(cr) // without a status, the access point is found again
	m.ready(cr)
	m.Expect(m.points()).To(HaveLen(1))

	pod := m.pod("user")
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(func() *storagev1.Blockers { m.must(m.get(cr)); return cr.Status.BlockedBy }).ShouldNot(BeNil())
	m.Expect(m.points()).To(HaveLen(1), "a pod still uses the access point")
	m.end(pod)
	m.Eventually(m.gone(cr)).Should(BeTrue())
	m.Expect(m.points()).To(BeEmpty())
	m.leavesNothing()

	again := m.create("images")
	m.ready(again)
	m.Expect(m.points()).To(HaveKeyWithValue(again.Status.ManagedAccessPointID, HaveSuffix("/images")), "with the same directory")
}

// TestEveryWriteMayBeTheLastWithAWS stops the operator after each write, and the first calls to
// EFS fail as well.
func TestEveryWriteMayBeTheLastWithAWS(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 6; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := newManaged(t, 10)
			m.efs.Fail(func(call int, action string) efstest.Fault {
				if action == "CreateAccessPoint" && call <= n {
					return efstest.Lost
				}
				return efstest.None
			})
			fence := enginetest.NewFence(n, true)
			m.start(fence.Option)
			cr := m.create("images")
			m.Eventually(fence.Reached()).Should(BeClosed())
			m.operator.Stop()
			m.start()
			m.ready(cr)
			m.Expect(m.points()).To(HaveLen(1))
			m.Expect(m.points()).To(HaveKey(cr.Status.ManagedAccessPointID))
			m.must(m.client.Delete(m.ctx, cr))
			m.Eventually(m.gone(cr)).Should(BeTrue())
			m.Expect(m.points()).To(BeEmpty())
			m.leavesNothing()
		})
	}
}

// TestManagedLimit: a SharedVolume beyond the number waits without calls, until another is
// deleted.
func TestManagedLimit(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 1)
	m.start()
	first := m.create("first")
	m.ready(first)
	second := m.create("second")
	m.Eventually(m.condition(second, "Ready")).Should(HavePrefix("False LimitReached: the namespace has 1 managed access points"))
	m.Expect(m.efs.Calls()).To(HaveLen(2), "no call for the second")
	m.must(m.client.Delete(m.ctx, first))
	m.ready(second)
	m.Expect(m.points()).To(HaveLen(1))
}

// TestTenantReachesNoOtherDirectory: a managed grant gives no access point that the tenant
// names, and no field names a directory or a user.
func TestTenantReachesNoOtherDirectory(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.start()
	own := m.create("images")
	m.ready(own)
	other := m.shared("theirs", func(cr *storagev1.SharedVolume) {
		cr.Spec.AccessPointID = storagev1.AccessPointID(own.Status.ManagedAccessPointID)
	})
	m.Eventually(m.condition(other, "Allowed")).Should(HavePrefix("False Denied"))
	up := &storagev1.SharedVolume{ObjectMeta: named(m.namespace, "..")}
	up.Spec.FileSystemID = m.fileSystem
	m.Expect(m.client.Create(m.ctx, up)).To(MatchError(ContainSubstring("metadata.name")))
	m.Expect(m.patch(own, `{"spec":{"accessPointID":"fsap-00000001"}}`)).To(MatchError(ContainSubstring("accessPointID must not be added or removed")))
	m.Expect(m.patch(own, `{"spec":{"fileSystemID":"fs-00000001"}}`)).To(MatchError(ContainSubstring("fileSystemID must not change without accessPointID")))
}

// TestTenantReachesNoForeignDirectory: a grant of every access point has none that the operator
// manages for another namespace.
func TestTenantReachesNoForeignDirectory(t *testing.T) {
	t.Parallel()
	m, other := newManaged(t, 10), enginetest.Namespace(t)
	m.runServices(nil, []enginetest.Runnable{volume.New(m.efs.Connector(t))}, other)
	own := m.create("images")
	m.ready(own)
	m.allow(storagev1.NamespaceSet{Names: []string{other}}, storagev1.AccessReadWrite)
	cr := m.shared("theirs", func(cr *storagev1.SharedVolume) {
		cr.Namespace, cr.Spec.AccessPointID = other, storagev1.AccessPointID(own.Status.ManagedAccessPointID)
	})
	m.Eventually(m.condition(cr, "Allowed")).Should(HavePrefix("False Denied"))
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(m.gone(cr)).Should(BeTrue())
}

// TestDeletionWithoutRights waits with the missing right, and ends with the annotation.
func TestDeletionWithoutRights(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.start()
	cr := m.create("images")
	m.ready(cr)
	m.efs.Fail(func(_ int, action string) efstest.Fault {
		if strings.HasPrefix(action, "Delete") {
			return efstest.Denied
		}
		return efstest.None
	})
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(m.condition(cr, "Ready")).Should(HavePrefix("False AWSDenied: AccessPointRemoved: AccessDeniedException: the operator may not call elasticfilesystem:DeleteAccessPoint"))
	m.Expect(m.condition(cr, "Ready")()).To(HaveSuffix("; the annotation asterism.dev/abandon=true ends the deletion and leaves access point " + cr.Status.ManagedAccessPointID + " of file system " + string(m.fileSystem)))
	m.must(m.patch(cr, `{"metadata":{"annotations":{"`+commonv1.AnnotationAbandon+`":"true"}}}`))
	m.Eventually(m.gone(cr)).Should(BeTrue())
	m.Expect(m.points()).To(HaveLen(1))
}

// TestDeletionOfWhatWasNeverAllowed makes no call: a tenant would learn which file systems exist.
func TestDeletionOfWhatWasNeverAllowed(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.must(m.patch(m.policy, `{"spec":{"namespaces":{"uids":["00000000-0000-4000-8000-000000000000"]}}}`))
	m.start()
	for _, fileSystem := range []storagev1.FileSystemID{m.fileSystem, "fs-00000000"} {
		cr := m.shared("images", func(cr *storagev1.SharedVolume) { cr.Spec.FileSystemID, cr.Spec.AccessPointID = fileSystem, "" })
		m.Eventually(m.condition(cr, "Allowed")).Should(HavePrefix("False Denied"))
		m.must(m.client.Delete(m.ctx, cr))
		m.Eventually(m.gone(cr)).Should(BeTrue())
		m.Expect(m.efs.Calls()).To(BeEmpty())
	}
}

// TestDeletionAfterItsFileSystem ends, and an event names what may exist elsewhere.
func TestDeletionAfterItsFileSystem(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.start()
	cr := m.create("images")
	m.ready(cr)
	m.efs.DeleteFileSystem(t, string(m.fileSystem))
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(m.gone(cr)).Should(BeTrue())
	m.Eventually(m.leftBehind).Should(ContainElement(HavePrefix("AccessPointRemoved: access point " + cr.Status.ManagedAccessPointID + ": FileSystemNotFound")))
}

// TestUsedAccessPointIsNotDeleted while somebody else's PersistentVolume mounts it. The message
// names no object of others.
func TestUsedAccessPointIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, remaining := range map[string]int{"volume deleted": 0, "abandoned": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManaged(t, 10)
			m.start()
			cr := m.create("images")
			m.ready(cr)
			id := cr.Status.ManagedAccessPointID
			other := m.foreignVolume("efs:" + string(m.fileSystem) + "::" + id)
			m.must(m.client.Delete(m.ctx, cr))
			m.Eventually(m.condition(cr, "Ready")).Should(And(
				HavePrefix("False InUse: AccessPointRemoved: another PersistentVolume uses access point "+id+": "),
				HaveSuffix("; the annotation asterism.dev/abandon=true ends the deletion and leaves access point "+id+" of file system "+string(m.fileSystem)),
				Not(ContainSubstring(m.namespace))))
			m.Expect(m.points()).To(HaveKey(id))
			if remaining == 0 {
				m.must(m.client.Delete(m.ctx, other))
			} else {
				m.must(m.patch(cr, `{"metadata":{"annotations":{"`+commonv1.AnnotationAbandon+`":"true"}}}`))
			}
			m.Eventually(m.gone(cr)).Should(BeTrue())
			m.Expect(m.points()).To(HaveLen(remaining))
		})
	}
}

// foreignVolume creates a PersistentVolume of somebody else with a handle of the driver.
func (m managedScene) foreignVolume(handle string) *corev1.PersistentVolume {
	m.t.Helper()
	other := m.volumeNamed(m.namespace)
	other.Spec = corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: volume.DriverName, VolumeHandle: handle}},
	}
	m.must(m.client.Create(m.ctx, other))
	m.t.Cleanup(func() { m.must(client.IgnoreNotFound(m.client.Delete(m.ctx, other))) })
	return other
}

// TestReplacedAccessPointAfterAConflict: an access point that was deleted in AWS has a successor.
// The status has its ID although the status could not be written in the pass that created it.
func TestReplacedAccessPointAfterAConflict(t *testing.T) {
	t.Parallel()
	m := newManaged(t, 10)
	m.start()
	cr := m.create("images")
	m.ready(cr)
	m.operator.Stop()
	old := cr.Status.ManagedAccessPointID
	_, err := m.efs.Direct().DeleteAccessPoint(m.ctx, &efs.DeleteAccessPointInput{AccessPointId: &old})
	m.must(err)
	var once sync.Once
	m.start(func(config *rest.Config, _ *ctrl.Options) {
		config.Wrap(before(func(request enginetest.Request) {
			if request.Resource == "sharedvolumes" && request.Subresource == "status" {
				once.Do(func() { _ = m.patch(cr.DeepCopy(), `{"metadata":{"annotations":{"note":"mine"}}}`) })
			}
		}))
	})
	m.Eventually(func() string { m.must(m.get(cr)); return cr.Status.AccessPointID }).Should(And(Not(BeEmpty()), Not(Equal(old))))
	m.ready(cr)
	m.Expect(m.points()).To(And(HaveLen(1), HaveKey(cr.Status.ManagedAccessPointID)))
	m.Expect(m.volume(cr).Spec.CSI.VolumeHandle).To(HaveSuffix("::" + cr.Status.ManagedAccessPointID))
	m.Expect(m.operator.Requests.Of("patch", "sharedvolumes/status")[0].Status).To(Equal(http.StatusConflict))
}

// before returns a wrapper that calls a function before each request to the API server.
func before(call func(enginetest.Request)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			parsed, _ := enginetest.ParseRequest(request)
			call(parsed)
			return next.RoundTrip(request)
		})
	}
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// newAlone is newManaged for tests that are not parallel, and so run after those of the driver.
func newAlone(t *testing.T) managedScene {
	t.Helper()
	newDriverScene(t)
	return newManaged(t, 10)
}

// region sets or removes spec.aws of the SharedVolumeDriver, which all tests share: a test that
// removes it must not be parallel.
func (m managedScene) region(aws string) {
	m.t.Helper()
	m.must(m.patch(&storagev1.SharedVolumeDriver{ObjectMeta: named("", storagev1.SharedVolumeDriverName)}, `{"spec":{"aws":`+aws+`}}`))
}

// TestDeletionWithoutRegion waits for an access point whose ID is known, and otherwise ends with
// an event if there may be one.
func TestDeletionWithoutRegion(t *testing.T) {
	m := newAlone(t)
	m.start()
	m.efs.Fail(func(int, string) efstest.Fault { return efstest.Creating })
	known := m.create("known")
	m.Eventually(m.condition(known, "AccessPointReady")).Should(HavePrefix("False Progressing: access point fsap-"))
	m.Expect(m.points()).To(HaveKey(known.Status.ManagedAccessPointID))
	m.efs.Fail(func(_ int, action string) efstest.Fault {
		if action == "CreateAccessPoint" {
			return efstest.Failed
		}
		return efstest.Creating
	})
	unknown := m.create("unknown")
	m.Eventually(m.condition(unknown, "AccessPointReady")).Should(HavePrefix("False AWSUnreachable"))

	m.region("null")
	for _, cr := range []*storagev1.SharedVolume{known, unknown} {
		m.Eventually(m.condition(cr, "AccessPointReady")).Should(HavePrefix("False AWSNotConfigured"))
		m.must(m.client.Delete(m.ctx, cr))
	}
	m.Eventually(m.gone(unknown)).Should(BeTrue())
	m.Eventually(m.leftBehind).Should(ContainElement(HavePrefix("AccessPointRemoved: access point with the tag asterism.dev/owner-uid=" + string(unknown.UID))))
	m.Eventually(m.condition(known, "Ready")).Should(HavePrefix("False AWSNotConfigured: AccessPointRemoved: "))
	m.region(`{"region":"eu-central-1"}`)
	m.Eventually(m.gone(known)).Should(BeTrue())
	m.Expect(m.points()).NotTo(HaveKey(known.Status.ManagedAccessPointID))
}

// createFileSystem runs the operator and creates a file system with deletionPolicy Delete. Its
// tests are not parallel: the operator of another test would reconcile it as well.
func (m managedScene) createFileSystem() *storagev1.SharedFileSystem {
	m.t.Helper()
	connector := m.efs.Connector(m.t)
	m.runServices(nil, []enginetest.Runnable{volume.New(connector), filesystem.New(connector)})
	fs := &storagev1.SharedFileSystem{ObjectMeta: named("", m.namespace)}
	fs.Spec.Managed = &storagev1.ManagedFileSystem{DeletionPolicy: storagev1.DeletionDelete}
	for _, subnet := range efstest.Subnets() {
		fs.Spec.Managed.MountTargets = append(fs.Spec.Managed.MountTargets, storagev1.MountTarget{SubnetID: subnet})
	}
	m.must(m.client.Create(m.ctx, fs))
	m.t.Cleanup(func() { m.release(fs); m.must(client.IgnoreNotFound(m.client.Delete(m.ctx, fs))) })
	return fs
}

// TestFileSystemWithoutRegion was never created, and can be deleted.
func TestFileSystemWithoutRegion(t *testing.T) {
	m := newAlone(t)
	m.region("null")
	fs := m.createFileSystem()
	m.Eventually(m.condition(fs, "Ready")).Should(And(HavePrefix("False AWSNotConfigured: the operator has no region of AWS: "), HaveSuffix("set spec.aws of SharedVolumeDriver cluster")))
	m.must(m.client.Delete(m.ctx, fs))
	m.Eventually(m.gone(fs)).Should(BeTrue())
}

// TestLostFileSystemWithoutRegion may exist: its deletion ends with an event.
func TestLostFileSystemWithoutRegion(t *testing.T) {
	m := newAlone(t)
	sent := false
	m.efs.Fail(func(_ int, action string) efstest.Fault {
		switch {
		case action == "CreateFileSystem":
			sent = true
			return efstest.Lost
		case sent:
			return efstest.Failed
		}
		return efstest.None
	})
	fs := m.createFileSystem()
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False AWSUnreachable"))
	m.region("null")
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False AWSNotConfigured"))
	m.Expect(fs.Status.FileSystemID).To(BeEmpty())
	m.must(m.client.Delete(m.ctx, fs))
	m.Eventually(m.gone(fs)).Should(BeTrue())
	m.Eventually(m.leftBehindIn(metav1.NamespaceDefault)).Should(ContainElement(HavePrefix("FileSystemRemoved: file system with the tag asterism.dev/owner-uid=" + string(fs.UID))))
}

// leftBehind returns the messages of the events LeftBehind.
func (m managedScene) leftBehind() []string { return m.leftBehindIn(m.namespace)() }

// leftBehindIn is leftBehind for another namespace. The events of cluster-scoped objects are in the
// namespace default.
func (m managedScene) leftBehindIn(namespace string) func() []string {
	return func() (messages []string) {
		var events corev1.EventList
		m.must(m.client.List(m.ctx, &events, client.InNamespace(namespace)))
		for _, event := range events.Items {
			if event.Reason == "LeftBehind" {
				messages = append(messages, event.Message)
			}
		}
		return messages
	}
}

// TestBoundFileSystemIsNotDeleted while a SharedVolume waits with a change, and while a
// PersistentVolume of somebody else exists.
func TestBoundFileSystemIsNotDeleted(t *testing.T) {
	m := newAlone(t)
	fs := m.createFileSystem()
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("True"))
	m.fileSystem = storagev1.FileSystemID(fs.Status.FileSystemID)
	m.allow(storagev1.NamespaceSet{Names: []string{m.namespace}}, storagev1.AccessReadWrite)
	cr := m.shared("images")
	m.ready(cr)
	pod := m.pod("user")
	m.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.FileSystemID = "fs-00000000" })
	m.Eventually(m.condition(cr, "Ready")).Should(HavePrefix("False Denied"))
	other := m.foreignVolume("efs:" + fs.Status.FileSystemID + ":/data")

	m.must(m.client.Delete(m.ctx, fs))
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False InUse: FileSystemRemoved: SharedVolumes use file system " + fs.Status.FileSystemID))
	m.end(pod)
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False InUse: FileSystemRemoved: PersistentVolume " + other.Name + " uses file system " + fs.Status.FileSystemID))
	m.must(m.client.Delete(m.ctx, other))
	m.Eventually(m.gone(fs)).Should(BeTrue())
}

// TestSharedFileSystem from its creation to its deletion, which waits for SharedVolumes.
func TestSharedFileSystem(t *testing.T) {
	m := newAlone(t)
	m.efs.Fail(func(int, string) efstest.Fault { return efstest.Creating })
	fs := m.createFileSystem()
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False Progressing: file system fs-"))
	m.Expect(fs.Status.State).To(Equal("creating"))
	m.efs.Fail(nil)
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("True"))
	m.Expect(fs.Status.State).To(Equal("available"))
	m.Expect(fs.Status.MountTargets).To(HaveLen(2))
	m.Expect(m.patch(fs, `{"spec":{"managed":{"encryption":"Disabled"}}}`)).To(MatchError(ContainSubstring("must not change except deletionPolicy")))
	m.Expect(m.patch(fs, `{"spec":{"managed":{"mountTargets":[{"subnetID":"subnet-0000000c"}]}}}`)).To(MatchError(ContainSubstring("mountTargets must not be removed")))

	cr := m.shared("user", func(cr *storagev1.SharedVolume) {
		cr.Spec.FileSystemID, cr.Spec.AccessPointID = storagev1.FileSystemID(fs.Status.FileSystemID), ""
	})
	m.must(m.client.Delete(m.ctx, fs))
	m.Eventually(m.condition(fs, "Ready")).Should(HavePrefix("False InUse: FileSystemRemoved: SharedVolumes use file system " + fs.Status.FileSystemID))
	m.must(m.client.Delete(m.ctx, cr))
	m.Eventually(m.gone(fs)).Should(BeTrue())
	_, err := m.efs.Direct().DescribeFileSystems(m.ctx, &efs.DescribeFileSystemsInput{FileSystemId: &fs.Status.FileSystemID})
	m.Expect(err).To(MatchError(ContainSubstring("FileSystemNotFound")))
}
