package suite

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"asterism.dev/lib/common/enginetest"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
	"asterism.dev/operators/shared-volume/internal/volume"
)

func (s *scene) label(labels string) {
	s.t.Helper()
	s.must(s.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, `{"metadata":{"labels":`+labels+`}}`))
}

func TestDeniedAllowedRevoked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.revoke()
	s.allow(storagev1.NamespaceSet{Selector: &storagev1.LabelSelector{MatchLabels: map[string]string{"storage": s.namespace}}}, storagev1.AccessReadWrite)
	s.run()
	cr := s.shared("images")
	s.Eventually(s.condition(cr, "Allowed")).Should(And(
		HavePrefix("False Denied: namespace "+s.namespace+" may not use access point fsap-00000001 of file system "+string(s.fileSystem)),
		ContainSubstring("ask an administrator"),
	))
	s.Expect(s.gone(s.claimNamed("images"))()).To(BeTrue())
	s.Expect(s.gone(s.volumeNamed(volume.Name(cr)))()).To(BeTrue())

	s.label(`{"storage":"` + s.namespace + `"}`)
	s.ready(cr)
	claim, bound := s.bound(cr)
	s.pod("web")

	s.label(`{"storage":null}`)
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("False Denied"))
	s.bound(cr)
	s.Expect(cr.Status.ClaimRef.Name).To(Equal("images"), "the claim stays bound")
	second := s.shared("more")
	s.Eventually(s.condition(second, "Allowed")).Should(HavePrefix("False Denied"))
	s.Expect(s.gone(s.claimNamed("more"))()).To(BeTrue(), "no new claim")

	s.must(s.get(bound))
	s.must(s.get(claim))
	s.Expect(claim.DeletionTimestamp).To(BeNil(), "the claim of the running pod stays")
	s.Expect(bound.DeletionTimestamp).To(BeNil())
}

// TestPinnedNamespace: a policy with another UID, for example of a deleted namespace of the
// same name, grants nothing.
func TestPinnedNamespace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.revoke()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.must(s.get(namespace))
	pinned := storagev1.NamespaceSet{Names: []string{s.namespace}, UIDs: []string{"00000000-0000-4000-8000-000000000000"}}
	s.policy = s.allow(pinned, storagev1.AccessReadWrite)
	s.run()
	cr := s.shared("images")
	s.Eventually(s.condition(cr, "Allowed")).Should(HavePrefix("False Denied"))
	s.revoke()
	pinned.UIDs = append(pinned.UIDs, string(namespace.UID))
	s.allow(pinned, storagev1.AccessReadWrite)
	s.ready(cr)
}

// TestDeletedClaimIsNotRecreatedWhileDenied, but after a policy grants the access again.
func TestDeletedClaimIsNotRecreatedWhileDenied(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, _ := s.bound(cr)
	s.revoke()
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("False Denied"))
	s.must(s.client.Delete(s.ctx, claim))
	s.Eventually(s.gone(claim)).Should(BeTrue())
	s.Eventually(func() any { s.must(s.get(cr)); return cr.Status.ClaimRef }).Should(BeNil(), "no claim is bound")
	s.Eventually(s.condition(cr, "Bound")).Should(HavePrefix("Unknown NotReached"), "Bound has made nothing")
	for _, condition := range []string{"Claimed", "VolumeReady"} {
		s.Eventually(s.condition(cr, condition)).Should(HavePrefix("Unknown Gone"), condition)
	}
	s.pass(cr)
	s.Expect(s.gone(claim)()).To(BeTrue())
	s.grantAgain()
	s.ready(cr)
	s.bound(cr)
}

func TestDeniedChangeKeepsTheClaim(t *testing.T) {
	t.Parallel()
	s, cr := newReady(t)
	claim, bound := s.bound(cr)
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.FileSystemID = "fs-00000000" })
	s.Eventually(s.condition(cr, "Ready")).Should(HavePrefix("False Denied"))
	s.Expect(cr.Status.FileSystemID).To(Equal(string(s.fileSystem)), "the status shows the old file system")
	s.Expect(cr.Status.VolumeName).To(Equal(bound.Name))
	s.must(s.get(claim))
	s.Expect(claim.DeletionTimestamp).To(BeNil())
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.FileSystemID = s.fileSystem })
	s.ready(cr)
	same, _ := s.bound(cr)
	s.Expect(same.UID).To(Equal(claim.UID))
}

func TestReadOnlyGrant(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.revoke()
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadOnly)
	s.run()
	cr := s.shared("images")
	s.Eventually(s.condition(cr, "Allowed")).Should(And(HavePrefix("False Denied"), ContainSubstring("only to read: set spec.access to ReadOnly")))
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.Access = storagev1.AccessReadOnly })
	s.ready(cr)
	_, bound := s.bound(cr)
	s.Expect(bound.Spec.MountOptions).To(ContainElement("ro"))
	s.Expect(bound.Spec.CSI.ReadOnly).To(BeTrue())
	s.allow(storagev1.NamespaceSet{Names: []string{s.namespace}}, storagev1.AccessReadWrite) // grants add up
	s.change(cr, func(spec *storagev1.SharedVolumeSpec) { spec.Access = storagev1.AccessReadWrite })
	s.ready(cr)
}

// TestPolicyForOthersCausesNoWrites, and no message names it.
func TestPolicyForOthersCausesNoWrites(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	cr := s.shared("images")
	denied := s.shared("denied", func(cr *storagev1.SharedVolume) { cr.Spec.FileSystemID = "fs-00000001" })
	s.ready(cr)
	s.Eventually(s.condition(denied, "Allowed")).Should(HavePrefix("False Denied"))
	s.pass(cr)
	s.operator.Requests.Reset()
	secret := s.allow(storagev1.NamespaceSet{Names: []string{"somebody-else"}}, storagev1.AccessReadWrite)
	s.pass(cr)
	s.Expect(s.operator.Requests.Writes()).To(HaveLen(1), "only the status that the test has reset")
	s.must(s.get(denied))
	s.Expect(enginetest.Conditions(denied)).NotTo(Or(ContainSubstring("somebody-else"), ContainSubstring(secret.Name)))
}

// TestRecreatedNamespaceIsAnEvent, and is in the status, because the namespace
// inherits the grant of its name.
func TestRecreatedNamespaceIsAnEvent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-again"}}
	policy := s.allow(storagev1.NamespaceSet{Names: []string{namespace.Name}}, storagev1.AccessReadWrite)
	touch := func() {
		s.must(s.patch(policy, `{"metadata":{"annotations":{"touched":"`+string(uuid.NewUUID())+`"}}}`))
	}
	users := func() []storagev1.GrantUser { touch(); s.must(s.get(policy)); return policy.Status.Namespaces }
	use := func() {
		s.must(s.client.Create(s.ctx, namespace))
		cr := &storagev1.SharedVolume{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "images"}}
		cr.Spec.FileSystemID, cr.Spec.AccessPointID = s.fileSystem, "fsap-00000001"
		s.must(s.client.Create(s.ctx, cr))
	}
	s.runServices(nil, []enginetest.Runnable{volume.Service, volume.Grants}, namespace.Name)

	use()
	first := string(namespace.UID)
	s.Eventually(users).Should(Equal([]storagev1.GrantUser{{Name: namespace.Name, UID: first}}))
	s.must(s.client.Delete(s.ctx, namespace))
	s.Eventually(s.gone(namespace)).Should(BeTrue())
	s.Eventually(users).Should(Equal([]storagev1.GrantUser{{Name: namespace.Name, UID: first}}), "the deleted namespace stays in the status")
	s.Expect(s.eventsOf(policy)).NotTo(ContainSubstring("created again"))

	namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name}}
	t.Cleanup(func() { s.must(s.client.Delete(s.ctx, namespace)) })
	use()
	s.Eventually(users).Should(Equal([]storagev1.GrantUser{{Name: namespace.Name, UID: string(namespace.UID), PreviousUID: first}}))
	s.Eventually(func() string { return s.eventsOf(policy) }).Should(And(
		ContainSubstring("was deleted and created again"), Not(ContainSubstring(namespace.Name)),
	), "events in namespace default can be read by many users")
	s.Eventually(s.condition(policy, "Ready")).Should(HavePrefix("True"))
}
