package suite

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// TestEveryWriteMayBeTheLast kills the operator after each of its writes while
// a SharedVolume is made, changed and deleted, or only loses the answer.
func TestEveryWriteMayBeTheLast(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{true, false} {
		for n := 1; n <= 9; n++ {
			t.Run(fmt.Sprintf("dies=%t/%d", dies, n), func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.make(enginetest.NewFence(n, dies), dies)
			})
		}
	}
}

// TestVolumeThatWasReservedForOurClaim by somebody else takes it before ours is there.
func TestVolumeThatWasReservedForOurClaim(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	theirs := s.volumeNamed(s.namespace + "-theirs")
	theirs.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		StorageClassName:              volume.StorageClassName,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "images"},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other", VolumeHandle: s.namespace}},
	}
	s.must(s.client.Create(s.ctx, theirs))
	s.Eventually(func() corev1.PersistentVolumePhase { s.must(s.get(theirs)); return theirs.Status.Phase }).Should(Equal(corev1.VolumeAvailable))
	fence := enginetest.NewFence(2, true) // finalizer and claim
	s.runWith([]enginetest.Option{fence.Option})
	cr := s.shared("images")
	s.Eventually(func() corev1.PersistentVolumePhase { s.must(s.get(theirs)); return theirs.Status.Phase }).Should(Equal(corev1.VolumeBound))
	s.operator.Stop()
	s.run()
	s.Eventually(s.condition(cr, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolume " + theirs.Name + ", which no SharedVolume has created"))
	claim := s.claim(cr)
	s.Expect(claim.DeletionTimestamp).To(BeNil(), "nothing is taken from them")
	s.Expect(s.condition(cr, "Ready")()).To(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, theirs))
	s.release(theirs)
	s.ready(cr)
	s.bound(cr)
}

// TestEveryWriteOfADeletionMayBeTheLast does the same to a deletion.
func TestEveryWriteOfADeletionMayBeTheLast(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ { // claim, volume, finalizer
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s, cr := newReady(t)
			s.operator.Stop()
			s.must(s.client.Delete(s.ctx, cr))
			fence := enginetest.NewFence(n, true)
			s.runWith([]enginetest.Option{fence.Option})
			s.Eventually(fence.Reached()).Should(BeClosed())
			s.operator.Stop()
			s.run()
			s.Eventually(s.gone(cr)).Should(BeTrue())
			s.leavesNothing()
		})
	}
}

func met(fence *enginetest.Fence) bool {
	select {
	case <-fence.Reached():
		return true
	default:
		return false
	}
}

func (s *scene) make(fence *enginetest.Fence, dies bool) {
	s.t.Helper()
	s.runWith([]enginetest.Option{fence.Option})
	cr := s.shared("images")
	s.Eventually(func() bool {
		return met(fence) || strings.HasPrefix(s.condition(cr, "Ready")(), "True")
	}).Should(BeTrue())
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.AccessPointID = "fsap-00000002" })
	s.Eventually(func() bool {
		return met(fence) || strings.HasPrefix(s.condition(cr, "Ready")(), "True")
	}).Should(BeTrue())
	s.Eventually(fence.Reached()).Should(BeClosed(), "an operator that writes less often is killed too late")
	if dies {
		s.operator.Stop()
		s.run()
	}
	s.ready(cr)
	s.bound(cr)
	s.Expect(s.volumes()).To(HaveLen(1), "volumes that are left")
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.leavesNothing()
}

// volumes that are reserved for the scene's namespace.
func (s *scene) volumes() []string {
	s.t.Helper()
	var all corev1.PersistentVolumeList
	s.must(s.client.List(s.ctx, &all))
	var names []string
	for _, volume := range all.Items {
		if volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Namespace == s.namespace {
			names = append(names, volume.Name)
		}
	}
	return names
}

func (s *scene) leavesNothing() {
	s.t.Helper()
	s.Expect(s.volumes()).To(BeEmpty(), "volumes that are left")
	var claims corev1.PersistentVolumeClaimList
	s.must(s.client.List(s.ctx, &claims, client.InNamespace(s.namespace)))
	s.Expect(claims.Items).To(BeEmpty(), "claims that are left")
}
