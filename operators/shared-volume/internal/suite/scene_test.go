// Package suite runs the operator against a real API server with the binder,
// protection, namespace and garbage controllers of Kubernetes.
package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	kstoragev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

const (
	patience  = 4 * time.Minute // the garbage collector discovers new kinds every 30 s, and the machine may be slow
	finalizer = "storage.asterism.dev/shared-volume"
)

// scene is a namespace that may use one file system, with an operator.
type scene struct {
	Gomega
	t          testing.TB
	ctx        context.Context
	client     client.Client
	namespace  string
	fileSystem storagev1.FileSystemID
	policy     *storagev1.SharedVolumePolicy
	operator   *enginetest.Operator
}

var installed sync.Mutex

// emptyScene returns a scene without a driver, an operator and a policy.
func emptyScene(t *testing.T, fileSystem storagev1.FileSystemID, schemes ...func(*runtime.Scheme) error) *scene {
	t.Helper()
	enginetest.InstallCRDs(t, "../../config/crd")
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	return &scene{
		Gomega: g, t: t, ctx: context.Background(), namespace: enginetest.Namespace(t), fileSystem: fileSystem,
		client: enginetest.Client(t, append(schemes, storagev1.AddToScheme)...),
	}
}

// newScene returns a scene with a policy that grants every access point of its file system.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := emptyScene(t, storagev1.FileSystemID("fs-"+strings.ReplaceAll(string(uuid.NewUUID()), "-", "")))
	s.installDriver()
	t.Cleanup(s.clear)
	s.policy = s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
	return s
}

// newReady returns a scene with a running operator and a SharedVolume that is ready.
func newReady(t *testing.T) (*scene, *storagev1.SharedVolume) {
	t.Helper()
	s := newScene(t)
	s.run()
	cr := s.shared("images")
	s.ready(cr)
	return s, cr
}

// installDriver creates a SharedVolumeDriver whose status says Installed, and the
// StorageClass. No operator reconciles the SharedVolumeDriver in these tests.
func (s *scene) installDriver() {
	s.t.Helper()
	installed.Lock()
	defer installed.Unlock()
	cluster := &storagev1.SharedVolumeDriver{ObjectMeta: metav1.ObjectMeta{Name: storagev1.SharedVolumeDriverName}}
	err := s.client.Create(s.ctx, cluster)
	if apierrors.IsAlreadyExists(err) {
		err = s.client.Get(s.ctx, client.ObjectKeyFromObject(cluster), cluster)
	}
	s.must(err)
	class := &kstoragev1.StorageClass{}
	manifest, err := os.ReadFile("../driver/manifests/storageclass.yaml")
	s.must(err)
	s.must(yaml.UnmarshalStrict(manifest, class))
	s.must(client.IgnoreAlreadyExists(s.client.Create(s.ctx, class)))
	before := cluster.DeepCopy()
	cluster.Status.ObservedGeneration, cluster.Status.Conditions = cluster.Generation, nil
	cluster.Status.Installation = storagev1.DriverInstalled
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: storagev1.ConditionInstalled, Status: metav1.ConditionTrue, Reason: "Complete"})
	s.must(s.client.Status().Patch(s.ctx, cluster, client.MergeFrom(before)))
}

func (s *scene) allow(namespaces storagev1.NamespaceSet, access storagev1.Access) *storagev1.SharedVolumePolicy {
	s.t.Helper()
	policy := &storagev1.SharedVolumePolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: s.namespace + "-"}}
	policy.Spec.Namespaces = namespaces
	policy.Spec.FileSystems = []storagev1.FileSystemGrant{{FileSystemID: s.fileSystem, AccessPoints: storagev1.AccessPointsAny, Access: access}}
	s.must(s.client.Create(s.ctx, policy))
	s.t.Cleanup(func() { s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, policy))) })
	return policy
}

// clear deletes the remains of a test, also of a failed test.
func (s *scene) clear() {
	if s.operator != nil {
		s.operator.Stop()
	}
	var all storagev1.SharedVolumeList
	s.must(s.client.List(s.ctx, &all, client.InNamespace(s.namespace)))
	for _, cr := range all.Items {
		if s.t.Failed() {
			s.t.Logf("SharedVolume %s: %s", cr.Name, enginetest.Conditions(&cr))
		}
		s.release(&cr)
		s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &cr)))
	}
	s.must(s.client.DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.GracePeriodSeconds(0)))
	var volumes corev1.PersistentVolumeList
	s.must(s.client.List(s.ctx, &volumes))
	for _, volume := range volumes.Items {
		if volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Namespace == s.namespace {
			s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, &volume)))
		}
	}
}

// release removes the finalizers.
func (s *scene) release(obj client.Object) {
	s.t.Helper()
	s.must(client.IgnoreNotFound(s.patch(obj, `{"metadata":{"finalizers":null}}`)))
}

func (s *scene) patch(obj client.Object, patch string) error {
	return s.client.Patch(s.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody"))
}

func (s *scene) must(err error) {
	s.t.Helper()
	s.Expect(err).NotTo(HaveOccurred())
}

// run starts the operator for the scene's namespace and others.
func (s *scene) run(others ...string) { s.runWith(nil, others...) }

func (s *scene) runWith(options []enginetest.Option, others ...string) {
	s.t.Helper()
	s.runServices(options, []enginetest.Runnable{volume.Service}, others...)
}

func (s *scene) runServices(options []enginetest.Option, services []enginetest.Runnable, others ...string) {
	s.t.Helper()
	options = append(options, func(_ *rest.Config, options *ctrl.Options) {
		for _, other := range others {
			options.Cache.DefaultNamespaces[other] = cache.Config{}
		}
	})
	s.operator = enginetest.RunWith(s.t, s.namespace, enginetest.Scheme(s.t, storagev1.AddToScheme), options, services...)
}

// shared creates a SharedVolume of the scene's file system.
func (s *scene) shared(name string, changes ...func(*storagev1.SharedVolume)) *storagev1.SharedVolume {
	s.t.Helper()
	cr := &storagev1.SharedVolume{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	cr.Spec.FileSystemID, cr.Spec.AccessPointID = s.fileSystem, "fsap-00000001"
	for _, change := range changes {
		change(cr)
	}
	s.must(s.client.Create(s.ctx, cr))
	return cr
}

func (s *scene) ready(crs ...*storagev1.SharedVolume) {
	s.t.Helper()
	for _, cr := range crs {
		s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("True"), cr.Name)
	}
}

// condition returns a condition of the newest generation, as "False Denied: message".
func (s *scene) condition(obj interface {
	client.Object
	Common() *commonv1.Status
}, name string,
) func() string {
	return func() string {
		if err := s.get(obj); err != nil {
			return err.Error()
		}
		found := meta.FindStatusCondition(obj.Common().Conditions, name)
		if found == nil || obj.Common().ObservedGeneration != obj.GetGeneration() {
			return fmt.Sprintf("not reported for generation %d", obj.GetGeneration())
		}
		return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
	}
}

func (s *scene) change(cr *storagev1.SharedVolume, change func(*storagev1.SharedVolumeSpec)) {
	s.t.Helper()
	s.must(s.get(cr))
	before := cr.DeepCopy()
	change(&cr.Spec)
	s.must(s.client.Patch(s.ctx, cr, client.MergeFrom(before), client.FieldOwner("somebody")))
}

func (s *scene) get(obj client.Object) error {
	return s.client.Get(s.ctx, client.ObjectKeyFromObject(obj), obj)
}

func (s *scene) gone(obj client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(s.get(obj)) }
}

// claim reads the claim of a SharedVolume.
func (s *scene) claim(cr *storagev1.SharedVolume) *corev1.PersistentVolumeClaim {
	s.t.Helper()
	claim := s.claimNamed(cr.ClaimName())
	s.must(s.get(claim))
	return claim
}

func (s *scene) claimNamed(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

// volume reads the volume of a SharedVolume with its present spec.
func (s *scene) volume(cr *storagev1.SharedVolume) *corev1.PersistentVolume {
	s.t.Helper()
	found := s.volumeNamed(volume.Name(cr))
	s.must(s.get(found))
	return found
}

func (s *scene) volumeNamed(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// bound asserts that claim and volume of the SharedVolume are bound to each other.
func (s *scene) bound(cr *storagev1.SharedVolume) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	s.t.Helper()
	claim, volume := s.claim(cr), s.volume(cr)
	s.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	s.Expect(claim.DeletionTimestamp).To(BeNil())
	s.Expect(claim.Spec.VolumeName).To(Equal(volume.Name))
	s.Expect(volume.DeletionTimestamp).To(BeNil())
	s.Expect(volume.Spec.ClaimRef.UID).To(Equal(claim.UID))
	s.Expect(volume.Spec.CSI.VolumeHandle).To(Equal(string(cr.Spec.FileSystemID) + "::" + string(cr.Spec.AccessPointID)))
	s.Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
	return claim, volume
}

// pod creates a pod that has a node and uses the claim images. No kubelet runs.
func (s *scene) pod(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	pod.Spec.NodeName = "node"
	pod.Spec.AutomountServiceAccountToken = new(bool)
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "images"},
	}}}
	s.Eventually(func() error { return s.client.Create(s.ctx, pod) }).Should(Succeed()) // the ServiceAccount of the namespace is created with a delay
	return pod
}

func (s *scene) end(pod *corev1.Pod) {
	s.t.Helper()
	s.must(s.client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)))
}

// pass resets the status and waits until the operator has written it again, in one write.
// The operator has then seen all earlier changes.
func (s *scene) pass(cr *storagev1.SharedVolume) {
	s.t.Helper()
	s.must(s.patch(cr.DeepCopy(), `{"status":null}`))
	before := cr.DeepCopy()
	before.Status = storagev1.SharedVolumeStatus{}
	reset, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": 0}})
	s.must(err)
	s.must(s.client.Status().Patch(s.ctx, before, client.RawPatch(types.MergePatchType, reset)))
	s.Eventually(func() int64 { s.must(s.get(cr)); return cr.Status.ObservedGeneration }).Should(Equal(cr.Generation))
}
