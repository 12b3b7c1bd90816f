package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// messageDelay is the engine's: if only messages change, the status is written after this time.
const messageDelay = 3 * time.Second

func TestClaimIsBoundWithFewWrites(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, _ := s.bound(cr)
	s.Expect(claim.Name).To(Equal("images"))
	s.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
	s.Expect(cr.Status.ClaimRef.Name).To(Equal("images"))
	s.Expect(cr.Status.VolumeName).To(Equal(volume.Name(cr)))
	s.Expect(cr.Status.FileSystemID).To(Equal(string(s.fileSystem)))
	s.Expect(cr.Status.AccessPointID).To(Equal("fsap-00000001"))
	took := meta.FindStatusCondition(cr.Status.Conditions, "Ready").LastTransitionTime.Sub(cr.CreationTimestamp.Time)
	took += time.Second // timestamps have whole seconds
	s.Expect(len(s.operator.Requests.Writes())).To(BeNumerically("<=", 5+int(took/messageDelay)), "writes until it is ready: %v", s.operator.Requests.Writes())
	s.pass(cr)
	s.operator.Requests.Reset()
	s.must(s.patch(cr, `{"metadata":{"annotations":{"note":"mine"}}}`))
	s.must(s.patch(claim, `{"metadata":{"annotations":{"note":"mine"}}}`))
	s.pass(cr)
	s.Expect(s.operator.Requests.Writes()).To(HaveLen(1), "only the status that the test has reset")
}

func TestDeletionTakesFourWrites(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	s.operator.Requests.Reset()
	began := time.Now()
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	took := time.Since(began)
	s.Expect(s.gone(claim)()).To(BeTrue(), "the claim is gone before the SharedVolume")
	s.Expect(s.gone(bound)()).To(BeTrue(), "the volume is gone before the SharedVolume")
	s.Expect(len(s.operator.Requests.Writes())).To(BeNumerically("<=", 4+int(took/messageDelay)), "writes to delete: %v", s.operator.Requests.Writes())
	if took < 4*time.Second { // timestamps have whole seconds
		s.Expect(s.operator.Requests.Of("list", "pods")).To(BeEmpty(), "a fast deletion lists no pods")
	}
}

// TestBlockersStayWhileDenied: blockedBy stays until the claim is deleted, also if the policy
// is deleted meanwhile.
func TestBlockersStayWhileDenied(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, _ := s.bound(cr)
	pod := s.pod("web")
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.AccessPointID = "fsap-00000002" })
	s.Eventually(func() *storagev1.Blockers { s.must(s.get(cr)); return cr.Status.BlockedBy }).ShouldNot(BeNil())
	s.revoke()
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("False Denied"))
	s.pass(cr)
	s.must(s.get(cr))
	s.Expect(cr.Status.BlockedBy).To(Equal(&storagev1.Blockers{Pods: []string{"web"}, Count: 1}))
	s.end(pod)
	s.Eventually(s.gone(claim)).Should(BeTrue())
	s.Eventually(func() *storagev1.Blockers { s.must(s.get(cr)); return cr.Status.BlockedBy }).Should(BeNil())
}

func TestChangeWaitsForPods(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, old := s.bound(cr)
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, s.pod(fmt.Sprintf("web-%02d", i)))
	}
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.AccessPointID = "fsap-00000002" })
	s.Eventually(func() *storagev1.Blockers { s.must(s.get(cr)); return cr.Status.BlockedBy }).ShouldNot(BeNil())
	s.Expect(cr.Status.BlockedBy.Count).To(BeEquivalentTo(12))
	s.Expect(cr.Status.BlockedBy.Pods).To(HaveLen(10))
	s.Expect(cr.Status.BlockedBy.Pods[0]).To(Equal("web-00"))
	s.Expect(s.condition(cr, "Cleared")()).To(ContainSubstring("12 pods use it: web-00, "))
	s.Expect(s.condition(cr, "Ready")()).To(HavePrefix("False"))
	s.Expect(cr.Status.AccessPointID).To(Equal("fsap-00000001"), "the access point of the bound volume")
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.AccessPointID = "fsap-00000003" })
	for _, pod := range pods {
		s.end(pod)
	}
	s.ready(cr)
	changed, _ := s.bound(cr)
	s.Expect(changed.UID).NotTo(Equal(claim.UID))
	s.Expect(cr.Status.AccessPointID).To(Equal("fsap-00000003"))
	s.Expect(cr.Status.BlockedBy).To(BeNil())
	s.Expect(s.gone(old)()).To(BeTrue(), "the old volume")
	for _, request := range s.operator.Requests.Of("apply", "persistentvolumes") {
		s.Expect(request.Name).NotTo(Equal(volume.Name(&storagev1.SharedVolume{ObjectMeta: cr.ObjectMeta, Spec: storagev1.SharedVolumeSpec{
			FileSystemID: s.fileSystem, AccessPointID: "fsap-00000002",
		}})), "no volume of the intermediate spec")
	}
}

func TestMountOptionsChangeInPlace(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	s.pod("web")
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.MountOptions = []storagev1.MountOption{"noatime"} })
	s.ready(cr)
	sameClaim, sameVolume := s.bound(cr)
	s.Expect(sameClaim.UID).To(Equal(claim.UID))
	s.Expect(sameVolume.UID).To(Equal(bound.UID))
	s.Expect(sameVolume.Spec.MountOptions).To(Equal([]string{"noatime"}))
}

func TestChangeRecreatesClaimAndVolume(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	for name, change := range map[string]func(*storagev1.SharedVolumeSpec){
		"capacity":  func(spec *storagev1.SharedVolumeSpec) { spec.Capacity = resource.MustParse("2Gi") },
		"access":    func(spec *storagev1.SharedVolumeSpec) { spec.Access = storagev1.AccessReadOnly },
		"claimName": func(spec *storagev1.SharedVolumeSpec) { spec.ClaimName = "pictures" },
	} {
		before := s.claim(cr)
		s.change(cr, change)
		s.ready(cr)
		claim, bound := s.bound(cr)
		s.Expect(claim.UID).NotTo(Equal(before.UID), name)
		s.Expect(claim.Name).To(Equal(cr.ClaimName()), name)
		s.Expect(claim.Spec.Resources.Requests.Storage().Cmp(cr.Spec.Capacity)).To(BeZero(), name)
		s.Expect(bound.Spec.CSI.ReadOnly).To(Equal(cr.Spec.Access == storagev1.AccessReadOnly), name)
	}
	bound := s.volume(cr)
	s.Expect(bound.Spec.MountOptions).To(Equal([]string{"ro"}))
	s.Expect(s.gone(s.claimNamed("images"))()).To(BeTrue(), "the claim with the old name is deleted")
}

func TestDeletedClaimOrVolumeIsRecreated(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]func(*scene, *storagev1.SharedVolume) client.Object{
		"claim":  func(s *scene, cr *storagev1.SharedVolume) client.Object { return s.claim(cr) },
		"volume": func(s *scene, cr *storagev1.SharedVolume) client.Object { return s.volume(cr) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cr := newReady(t)
			claim, bound := s.bound(cr)
			s.must(s.client.Delete(s.ctx, object(s, cr)))
			before := []types.UID{claim.UID, bound.UID}
			s.Eventually(func() bool {
				s.must(client.IgnoreNotFound(s.get(claim)))
				return claim.UID != before[0] && claim.Status.Phase == corev1.ClaimBound
			}).Should(BeTrue(), "the claim is recreated and bound")
			s.ready(cr)
			newClaim, newVolume := s.bound(cr)
			s.Expect(newVolume.Spec.ClaimRef.UID).To(Equal(newClaim.UID))
			if name == "volume" { // the volume of a deleted claim may stay, if Kubernetes has not yet released it
				s.Expect(newVolume.UID).NotTo(Equal(before[1]))
			}
		})
	}
}

// TestForceDeletedVolumeIsRecreated: a volume that was deleted without its finalizer leaves a
// lost claim.
func TestForceDeletedVolumeIsRecreated(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	s.operator.Stop()
	s.must(s.client.Delete(s.ctx, bound))
	s.release(bound)
	s.Eventually(func() corev1.PersistentVolumeClaimPhase { s.must(s.get(claim)); return claim.Status.Phase }).Should(Equal(corev1.ClaimLost))
	s.run()
	s.Eventually(func() bool { return s.get(bound) == nil }).Should(BeTrue())
	s.ready(cr)
	newClaim, _ := s.bound(cr)
	s.Expect(newClaim.UID).NotTo(Equal(claim.UID))
}

func TestDeletionWaitsForPods(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	pod := s.pod("web")
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(func() *storagev1.Blockers { s.must(s.get(cr)); return cr.Status.BlockedBy }).ShouldNot(BeNil())
	s.Expect(cr.Status.BlockedBy.Pods).To(Equal([]string{"web"}))
	s.Expect(cr.Status.BlockedBy.Count).To(BeEquivalentTo(1))
	s.Expect(s.condition(cr, "Ready")()).To(And(HavePrefix("False Deleting"), ContainSubstring("1 pod uses it: web")))
	s.must(s.get(bound))
	s.Expect(bound.DeletionTimestamp).To(BeNil(), "the volume waits for the claim")
	s.operator.Stop() // another instance of the operator completes the deletion
	s.run()
	s.end(pod)
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.Expect(s.gone(claim)()).To(BeTrue())
	s.Expect(s.gone(bound)()).To(BeTrue())
}

func TestNamespaceDeletionDeletesVolumes(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	_, bound := s.bound(cr)
	pod := s.pod("web")
	s.operator.Requests.Reset()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(func() bool { return s.get(pod) == nil && pod.DeletionTimestamp != nil }).Should(BeTrue(), "Kubernetes deletes the pods first")
	s.must(client.IgnoreNotFound(s.client.Delete(s.ctx, pod, client.GracePeriodSeconds(0)))) // as a kubelet would do
	s.Eventually(s.gone(bound)).Should(BeTrue(), "the volume is deleted")
	s.Eventually(s.gone(namespace)).Should(BeTrue())
	for _, write := range s.operator.Requests.Writes() {
		s.Expect(write.Verb).NotTo(Equal("apply"), "%s in a namespace that is being deleted", write)
	}
}

// TestNewNamesakeDoesNotAdopt the claim and volume of a SharedVolume of the same name that
// was deleted without its finalizer.
func TestNewNamesakeDoesNotAdopt(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, old := s.bound(cr)
	pod := s.pod("web")
	s.operator.Stop()
	s.must(s.client.Delete(s.ctx, cr))
	s.release(cr)
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.run()
	again := s.shared("images", func(cr *storagev1.SharedVolume) { cr.Spec.AccessPointID = "fsap-00000009" })
	s.Eventually(s.condition(again, "Cleared")).Should(HavePrefix("False"), "the new SharedVolume waits for the old claim")
	s.Expect(again.Spec.AccessPointID).To(BeEquivalentTo("fsap-00000009"), "the spec is unchanged")
	s.Expect(again.Status.AccessPointID).To(BeEmpty(), "the new SharedVolume has no bound claim")
	s.end(pod)
	s.ready(again)
	made, _ := s.bound(again)
	s.Expect(made.UID).NotTo(Equal(claim.UID))
	s.must(s.get(old))
	s.Expect(old.DeletionTimestamp).To(BeNil(), "the old volume stays without an owner")
}

func TestLongNames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	short, long := s.shared(strings.Repeat("a", 63)), s.shared(strings.Repeat("b", 253))
	s.ready(short, long)
	s.bound(short)
	s.bound(long)
}
