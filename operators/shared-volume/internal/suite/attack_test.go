package suite

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

// another creates a scene with another namespace, the same file system and the same access.
func (s *scene) another(name string) *scene {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.must(s.client.Create(s.ctx, namespace))
	other := *s
	other.namespace = name
	s.t.Cleanup(func() { s.must(s.client.Delete(s.ctx, namespace)) })
	s.t.Cleanup(other.clear)
	s.allow(storagev1.NamespaceSet{Names: []string{name}}, storagev1.AccessReadWrite)
	return &other
}

// foreignClaim returns a claim of another owner that asks for a volume by name, or "" for
// any volume.
func (s *scene) foreignClaim(name, volume string) *corev1.PersistentVolumeClaim {
	claim := s.claimNamed(name)
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	claim.Spec.StorageClassName = new(string)
	*claim.Spec.StorageClassName = "shared-volume"
	claim.Spec.VolumeName = volume
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return claim
}

func TestNamesThatConcatenateAlike(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := s.another(s.namespace + "-b")
	s.run(other.namespace)
	first := s.shared("b-c")
	second := other.shared("c", func(cr *storagev1.SharedVolume) { cr.Spec.AccessPointID = "fsap-00000002" })
	s.ready(first, second)
	s.bound(first)
	claim, bound := other.bound(second)
	s.must(s.client.Delete(s.ctx, first))
	s.Eventually(s.gone(first)).Should(BeTrue())
	other.ready(second)
	claimNow, boundNow := other.bound(second)
	s.Expect(claimNow.UID).To(Equal(claim.UID))
	s.Expect(boundNow.UID).To(Equal(bound.UID))
}

func TestForeignClaimIsAConflict(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	foreign := s.foreignClaim("images", "")
	s.must(s.client.Create(s.ctx, foreign))
	s.run()
	cr := s.shared("images")
	s.Eventually(s.condition(cr, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolumeClaim images exists and was not created by this operator"))
	s.Expect(s.gone(s.volumeNamed(volume.Name(cr)))()).To(BeTrue(), "no volume is reserved for the claim of another owner")
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.must(s.get(foreign))
	s.Expect(foreign.DeletionTimestamp).To(BeNil())
	s.Expect(foreign.Labels).To(BeEmpty())
	s.Expect(foreign.Spec.VolumeName).To(BeEmpty())
	for _, write := range s.operator.Requests.Writes() {
		s.Expect(write.Resource).NotTo(Equal("persistentvolumeclaims"), "%v", write)
	}
	again := s.shared("images")
	s.Eventually(s.condition(again, "Cleared")).Should(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, foreign))
	s.ready(again) // the deletion of the foreign claim wakes the operator
}

func TestTwoSharedVolumesWantOneClaim(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	first := s.shared("images")
	s.ready(first)
	second := s.shared("pictures", func(cr *storagev1.SharedVolume) { cr.Spec.ClaimName = "images" })
	s.Eventually(s.condition(second, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolumeClaim images exists and belongs to SharedVolume images"))
	for i, capacity := range []string{"2Gi", "3Gi", "4Gi", "5Gi"} { // each change recreates the claim
		var pod *corev1.Pod
		if i == 0 {
			pod = s.pod("web")
		}
		s.change(first, func(spec *storagev1.SharedVolumeSpec) { spec.Capacity = resource.MustParse(capacity) })
		if i == 0 { // the deletion takes long enough for blockedBy
			s.Eventually(func() *storagev1.Blockers { s.must(s.get(first)); return first.Status.BlockedBy }).ShouldNot(BeNil())
			s.end(pod)
		}
		s.ready(first)
		s.bound(first)
		s.Expect(s.condition(second, "Cleared")()).To(HavePrefix("False Conflict"), "the name belongs to the first SharedVolume also while the claim is recreated")
	}
	s.must(s.client.Delete(s.ctx, second))
	s.Eventually(s.gone(second)).Should(BeTrue())
	s.bound(first)
	third := s.shared("photos", func(cr *storagev1.SharedVolume) { cr.Spec.ClaimName = "images" })
	s.Eventually(s.condition(third, "Cleared")).Should(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, first))
	s.ready(third) // the name is free
	s.bound(third)
}

// TestPromisedClaimName: a SharedVolume whose claim was deleted keeps the name of the claim, also
// while it is paused and cannot create the claim again.
func TestPromisedClaimName(t *testing.T) {
	t.Parallel()
	s, first := newReady(t)
	s.change(first, func(spec *storagev1.SharedVolumeSpec) { spec.Paused = true })
	s.Eventually(s.condition(first, "Ready")).Should(HavePrefix("Unknown Paused"))
	claim := s.claim(first)
	s.must(s.client.Delete(s.ctx, claim))
	s.Eventually(s.gone(claim)).Should(BeTrue())
	second := s.shared("pictures", func(cr *storagev1.SharedVolume) { cr.Spec.ClaimName = "images" })
	s.Eventually(s.condition(second, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolumeClaim images belongs to SharedVolume images"))
	s.Expect(s.gone(claim)()).To(BeTrue())
	s.change(first, func(spec *storagev1.SharedVolumeSpec) { spec.Paused = false })
	s.ready(first)
	s.bound(first)
	s.change(first, func(spec *storagev1.SharedVolumeSpec) { spec.ClaimName = "photos" })
	s.ready(first, second) // the name is free
	s.bound(second)
}

// revoke deletes the policy of the scene, so that no SharedVolume gets a claim.
func (s *scene) revoke() {
	s.t.Helper()
	s.must(s.client.Delete(s.ctx, s.policy))
}

func (s *scene) grantAgain() {
	s.t.Helper()
	s.policy = s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite)
}

func TestForeignVolumeIsAConflict(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.revoke()
	s.run()
	cr := s.shared("images")
	foreign := s.volumeNamed(volume.Name(cr))
	foreign.Spec = corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other", VolumeHandle: "foreign"}},
	}
	s.must(s.client.Create(s.ctx, foreign))
	t.Cleanup(func() { s.must(s.client.Delete(s.ctx, foreign)) })
	s.grantAgain()
	s.Eventually(s.condition(cr, "Cleared")).Should(HavePrefix("False Conflict: PersistentVolume " + foreign.Name))
	s.Expect(s.gone(s.claimNamed("images"))()).To(BeTrue())
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.must(s.get(foreign))
	s.Expect(foreign.DeletionTimestamp).To(BeNil())
	s.Expect(foreign.Spec.ClaimRef).To(BeNil())
	s.Expect(foreign.Labels).To(BeEmpty())
}

func TestVolumeIsNotBoundToAForeignClaim(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.revoke()
	other := s.another(s.namespace + "-thief")
	s.run()
	cr := s.shared("images")
	byName := other.foreignClaim("images", volume.Name(cr))
	byClass := other.foreignClaim("any", "")
	s.must(s.client.Create(s.ctx, byName))
	s.must(s.client.Create(s.ctx, byClass))
	s.grantAgain()
	s.ready(cr)
	s.bound(cr)
	for _, claim := range []*corev1.PersistentVolumeClaim{byName, byClass} {
		s.must(s.get(claim))
		s.Expect(claim.Status.Phase).To(Equal(corev1.ClaimPending), claim.Name)
	}
}

// TestForgedClaimInAnotherNamespace: a claim with forged labels and annotations neither
// deletes nor replaces the claim of a SharedVolume, and is not deleted.
func TestForgedClaimInAnotherNamespace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	other := s.another(s.namespace + "-forger")
	s.run(other.namespace)
	cr := s.shared("images")
	s.ready(cr)
	claim, bound := s.bound(cr)
	forged := other.foreignClaim("images", "")
	forged.Labels = map[string]string{"asterism.dev/owner-uid": string(cr.UID), "asterism.dev/stage": "Claimed"}
	forged.Annotations = map[string]string{"asterism.dev/owner": cr.Namespace + "/images/" + string(cr.UID)}
	forged.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("7Gi")
	s.must(s.client.Create(s.ctx, forged))
	s.operator.Stop()
	s.run(other.namespace) // this operator sees the forged claim before its first pass
	s.pass(cr)
	s.ready(cr)
	claimNow, boundNow := s.bound(cr)
	s.Expect(claimNow.UID).To(Equal(claim.UID))
	s.Expect(boundNow.UID).To(Equal(bound.UID))
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.must(s.get(forged))
	s.Expect(forged.DeletionTimestamp).To(BeNil(), "the forged claim is not deleted")
}

// TestForgedLabelOnClaim: a label does not make a claim that of a SharedVolume.
func TestForgedLabelOnClaim(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	cr := s.shared("images")
	s.ready(cr)
	forged := s.foreignClaim("data", "")
	forged.Labels = map[string]string{"asterism.dev/owner-uid": string(cr.UID), "asterism.dev/stage": "Claimed"}
	s.must(s.client.Create(s.ctx, forged))
	s.pass(cr)
	s.ready(cr)
	s.bound(cr)
	s.must(s.client.Delete(s.ctx, cr))
	s.Eventually(s.gone(cr)).Should(BeTrue())
	s.must(s.get(forged))
	s.Expect(forged.DeletionTimestamp).To(BeNil(), "the forged claim is not deleted")
}

// TestForgedLabelOnVolume: a label does not change the owner of a volume.
func TestForgedLabelOnVolume(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	cr := s.shared("images")
	thief := s.shared("thief", func(cr *storagev1.SharedVolume) { cr.Spec.AccessPointID = "fsap-00000002" })
	s.ready(cr, thief)
	claim, bound := s.bound(cr)
	ownerUID := string(cr.UID)
	s.must(s.patch(bound, `{"metadata":{"labels":{"asterism.dev/owner-uid":"`+string(thief.UID)+`","app.kubernetes.io/instance":"thief"}}}`))
	s.Eventually(func() string { s.must(s.get(bound)); return bound.Labels["asterism.dev/owner-uid"] }).Should(Equal(ownerUID))
	s.operator.Stop()
	s.must(s.patch(bound, `{"metadata":{"labels":{"asterism.dev/owner-uid":"`+string(thief.UID)+`"}}}`))
	s.must(s.client.Delete(s.ctx, thief))
	s.run()
	s.Eventually(s.gone(thief)).Should(BeTrue())
	s.Eventually(func() string { s.must(s.get(bound)); return bound.Labels["asterism.dev/owner-uid"] }).Should(Equal(ownerUID))
	s.ready(cr)
	claimNow, boundNow := s.bound(cr)
	s.Expect(claimNow.UID).To(Equal(claim.UID))
	s.Expect(boundNow.UID).To(Equal(bound.UID))
}

// TestForgedOwnerOnVolume: a volume with forged labels and annotations is not deleted.
func TestForgedOwnerOnVolume(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	cr := s.shared("images")
	thief := s.shared("thief", func(cr *storagev1.SharedVolume) { cr.Spec.AccessPointID = "fsap-00000002" })
	s.ready(cr, thief)
	_, bound := s.bound(cr)
	s.must(s.patch(bound, `{"metadata":{"labels":{"asterism.dev/owner-uid":"`+string(thief.UID)+`"},
		"annotations":{"asterism.dev/owner":"x/thief/`+string(thief.UID)+`"}}}`))
	s.Eventually(s.condition(cr, "Cleared")).Should(HavePrefix("False Conflict"))
	s.must(s.client.Delete(s.ctx, thief))
	s.Eventually(s.gone(thief)).Should(BeTrue())
	s.must(s.get(bound))
	s.Expect(bound.DeletionTimestamp).To(BeNil())
	s.must(s.patch(bound, `{"metadata":{"annotations":{"asterism.dev/owner":null},"labels":{"asterism.dev/owner-uid":"`+string(cr.UID)+`"}}}`))
	s.ready(cr)
	s.bound(cr)
}

func TestReservationIsRestored(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	s.pod("web")
	for range 2 { // the second time, the operator has written the reservation
		s.must(s.patch(bound, `{"spec":{"claimRef":null}}`))
		s.Eventually(func() bool {
			s.must(s.get(bound))
			return bound.Spec.ClaimRef != nil && bound.Spec.ClaimRef.UID == claim.UID && bound.Status.Phase == corev1.VolumeBound
		}).Should(BeTrue())
	}
	s.ready(cr)
	claimNow, boundNow := s.bound(cr)
	s.Expect(claimNow.UID).To(Equal(claim.UID), "the claim is not recreated")
	s.Expect(boundNow.UID).To(Equal(bound.UID))
	s.Expect(cr.Status.BlockedBy).To(BeNil())
}

// TestStolenVolumeIsReservedAgain after a user who may edit volumes has reserved the volume
// for another claim.
func TestStolenVolumeIsReservedAgain(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"seen at once": false, "seen when the other claim is bound": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			other := s.another(s.namespace + "-thief")
			foreign := other.foreignClaim("images", "")
			s.must(s.client.Create(s.ctx, foreign))
			s.run()
			cr := s.shared("images")
			s.ready(cr)
			claim, bound := s.bound(cr)
			if late {
				s.operator.Stop()
			}
			s.must(s.patch(bound, `{"spec":{"claimRef":{"namespace":"`+other.namespace+`","name":"images","uid":"`+string(foreign.UID)+`","resourceVersion":null}}}`))
			if late {
				s.Eventually(func() corev1.PersistentVolumeClaimPhase { s.must(s.get(foreign)); return foreign.Status.Phase }).Should(Equal(corev1.ClaimBound))
				s.run()
			}
			s.Eventually(func() bool {
				return s.get(claim) == nil && s.get(bound) == nil && bound.Spec.ClaimRef.Namespace == s.namespace && claim.Status.Phase == corev1.ClaimBound
			}).Should(BeTrue(), "the claim is bound again, also from phase Lost")
			s.ready(cr)
			claimNow, boundNow := s.bound(cr)
			s.Expect(claimNow.UID).To(Equal(claim.UID), "running pods keep their claim")
			s.Expect(boundNow.UID).To(Equal(bound.UID))
			// No node mounts the volume for the foreign claim. Kubernetes updates the phase of
			// the foreign claim in its next sync, every 15 s.
			s.Eventually(func() corev1.PersistentVolumeClaimPhase { s.must(s.get(foreign)); return foreign.Status.Phase }).ShouldNot(Equal(corev1.ClaimBound))
		})
	}
}
