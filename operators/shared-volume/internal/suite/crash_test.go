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

// TestEveryWriteMayBeTheLast stops the operator after each of its writes, or loses the answer
// to the write, while a SharedVolume is created, changed and deleted.
func TestEveryWriteMayBeTheLast(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{true, false} {
		for n := 1; n <= 9; n++ {
			t.Run(fmt.Sprintf("stops=%t/%d", stops, n), func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.createChangeDelete(enginetest.NewFence(n, stops), stops)
			})
		}
	}
}

// TestForeignVolumeReservedForTheClaim is bound to the claim of a SharedVolume before the
// SharedVolume has a volume.
func TestForeignVolumeReservedForTheClaim(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	foreign := s.volumeNamed(s.namespace + "-foreign")
	foreign.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		StorageClassName:              volume.StorageClassName,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "images"},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other", VolumeHandle: s.namespace}},
	}
	s.must(s.client.Create(s.ctx, foreign))
	s.Eventually(func() corev1.PersistentVolumePhase { s.must(s.get(foreign)); return foreign.Status.Phase }).Should(Equal(corev1.VolumeAvailable))
	fence := enginetest.NewFence(2, true) // finalizer and claim
	s.runWith([]enginetest.Option{fence.Option})
	cr := s.shared("images")
	s.Eventually(func() corev1.PersistentVolumePhase { s.must(s.get(foreign)); return foreign.Status.Phase }).Should(Equal(corev1.VolumeBound))
	s.operator.Stop()
	s.run()
	s.Eventually(s.condition(cr, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolume " + foreign.Name + ", which no SharedVolume has created"))
	claim := s.claim(cr)
	s.Expect(claim.DeletionTimestamp).To(BeNil(), "the claim is not deleted")
	s.Expect(s.condition(cr, "Ready")()).To(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, foreign))
	s.release(foreign)
	s.ready(cr)
	s.bound(cr)
}

// TestEveryWriteOfADeletionMayBeTheLast stops the operator after each write of a deletion.
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

func reached(fence *enginetest.Fence) bool {
	select {
	case <-fence.Reached():
		return true
	default:
		return false
	}
}

func (s *scene) createChangeDelete(fence *enginetest.Fence, stops bool) {
	s.t.Helper()
	s.runWith([]enginetest.Option{fence.Option})
	cr := s.shared("images")
	s.Eventually(func() bool {
		return reached(fence) || strings.HasPrefix(s.condition(cr, "Ready")(), "True")
	}).Should(BeTrue())
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.AccessPointID = "fsap-00000002" })
	s.Eventually(func() bool {
		return reached(fence) || strings.HasPrefix(s.condition(cr, "Ready")(), "True")
	}).Should(BeTrue())
	s.Eventually(fence.Reached()).Should(BeClosed(), "the operator made fewer writes than the fence counts")
	if stops {
		s.operator.Stop()
		s.run()
	}
	s.ready(cr)
	s.bound(cr)
	s.Eventually(s.volumes).Should(HaveLen(1), "one volume remains")
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
	s.Expect(s.volumes()).To(BeEmpty(), "no volume remains")
	var claims corev1.PersistentVolumeClaimList
	s.must(s.client.List(s.ctx, &claims, client.InNamespace(s.namespace)))
	s.Expect(claims.Items).To(BeEmpty(), "no claim remains")
}
