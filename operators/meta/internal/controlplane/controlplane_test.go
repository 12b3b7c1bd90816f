package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

var subject = enginetest.Subject[*metav1alpha1.ControlPlane]{
	Service:     Service,
	AddToScheme: []func(*runtime.Scheme) error{metav1alpha1.AddToScheme, novav1.AddToScheme, storagev1.AddToScheme},
	Conditions:  metav1alpha1.ControlPlaneConditions,
	CRDs:        []string{"../../../nova/config/crd", "../../../shared-volume/config/crd"},
}

func TestControlPlane(t *testing.T) {
	subject.Test(t)
	enginetest.Role(t, "../../config/rbac/role.yaml", subject)
}

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "ControlPlane")
}

// sample returns the sample. The Secrets and Services that it names are inputs of the Nova,
// and need not exist in these tests.
func sample() *metav1alpha1.ControlPlane {
	cr := &metav1alpha1.ControlPlane{}
	enginetest.DecodeSample(GinkgoTB(), "../../config/samples/controlplane.yaml", "ControlPlane", cr)
	return cr
}

var _ = Describe("ControlPlane", func() {
	var (
		w    *enginetest.World
		nova *novav1.Nova
		cr   *metav1alpha1.ControlPlane
	)
	BeforeEach(func() {
		enginetest.InstallCRDs(GinkgoTB(), "../../config/crd", "../../../nova/config/crd", "../../../shared-volume/config/crd")
		w = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{}, subject.AddToScheme...)
		cr = sample()
		nova = &novav1.Nova{ObjectMeta: named(cr.Name)}
	})
	start := func(report func(engine.Object) (condition, message string)) {
		enginetest.Sibling{Kind: nova, Conditions: []string{commonv1.ConditionAvailable}, Report: report}.
			Start(GinkgoTB(), w.Namespace, subject.AddToScheme...)
		w.Run(Service)
	}

	It("creates a Nova and the metadata Secret, and nothing else", func() {
		start(nil)
		cr.Spec.Nova.Scheduler.Pod.NodeSelector = map[string]string{}
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(cr.Status.Nova).To(HaveValue(And(HaveField("Name", "demo"), HaveField("Ready", metav1.ConditionTrue))))
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		Expect(w.Operator.Requests.Of("apply", "novas")).To(HaveLen(1))
		Expect(w.Operator.Requests.Of("apply", "secrets")).To(HaveLen(1))
		Expect(w.Operator.Requests.Of("apply", "sharedvolumes")).To(BeEmpty())
		Expect(meta.FindStatusCondition(cr.Status.Conditions, metav1alpha1.ConditionSharedVolumesReady)).To(BeNil(), "the spec has no SharedVolumes")

		shared := &corev1.Secret{ObjectMeta: named(cr.Name + "-metadata")}
		Expect(w.Read(shared)).To(BeTrue())
		Expect(shared.Data).To(HaveKeyWithValue("sharedSecret", Not(BeEmpty())))
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.MetadataSecretRef.Name).To(Equal(shared.Name))
		Expect(nova.Spec.Scheduler.Pod.NodeSelector).To(And(BeEmpty(), Not(BeNil())), "{} replaces spec.pod.nodeSelector of the Nova")

		w.Operator.Requests.Reset()
		w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/openstack/nova:next" })
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.ContainerImage).To(Equal("quay.example/openstack/nova:next"))
		Expect(w.Operator.Requests.Of("apply", "secrets")).To(BeEmpty(), "the metadata Secret is never changed")
	})

	It("uses the Secret of metadataSecretRef, also if the operator has generated it", func() {
		start(nil)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		generated := &corev1.Secret{ObjectMeta: named(cr.Name + "-metadata")}
		w.Change(cr, func() { cr.Spec.MetadataSecretRef = &commonv1.SecretReference{Name: generated.Name} })
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(w.Read(generated)).To(BeTrue())

		w.Change(cr, func() { cr.Spec.MetadataSecretRef.Name = "neutron" })
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionInputsReady, engine.ReasonWaiting, "Secret neutron does not exist")
		w.Create(&corev1.Secret{ObjectMeta: named("neutron"), StringData: map[string]string{"sharedSecret": "neutron's"}})
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.MetadataSecretRef.Name).To(Equal("neutron"))
		enginetest.AwaitGone(GinkgoTB(), w.Client, generated)
	})

	It("reports the state of the Nova", func() {
		start(func(obj engine.Object) (condition, message string) {
			reported := obj.(*novav1.Nova) //nolint:forcetypeassert // the fake has this kind
			reported.Status.Cells = []novav1.CellStatus{{
				Name: "cell1", Ready: metav1.ConditionFalse, Mapped: metav1.ConditionTrue,
				CellContent: novav1.CellContent{
					Hosts:                  &novav1.CellHosts{Mapped: 2},
					ComputeConfigSecretRef: &commonv1.SecretReference{Name: "demo-cell1-compute-config"},
				},
			}}
			return commonv1.ConditionReady, "NovaCell demo-cell1: Secret x does not exist"
		})
		w.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionNovaReady, engine.ReasonWaiting, "Nova demo: NovaCell demo-cell1: Secret x does not exist")
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonWaiting, "Secret x does not exist")
		Expect(w.Read(nova)).To(BeTrue())
		Expect(cr.Status.Nova).To(HaveValue(And(
			HaveField("ReadyCells", BeEquivalentTo(0)), HaveField("DesiredCells", BeEquivalentTo(1)), HaveField("Cells", And(HaveLen(1), Equal(nova.Status.Cells))),
		)))
	})

	It("changes nothing but paused of the Nova while it is paused, and is deleted nevertheless", func() {
		start(nil)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		w.Operator.Requests.Reset()
		w.Change(cr, func() { cr.Spec.Paused = true })
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, metav1.ConditionUnknown)
		Expect(w.Read(nova) && nova.IsPaused()).To(BeTrue(), "the Nova is paused")

		w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/openstack/nova:next" })
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, metav1.ConditionUnknown)
		Expect(w.Operator.Requests.Of("apply", "novas")).To(HaveLen(1))
		Expect(w.Written()).To(HaveEach(Or(Equal("apply novas demo"), Equal("patch controlplanes/status demo"))))
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.ContainerImage).NotTo(Equal(cr.Spec.ContainerImage))

		w.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitGone(GinkgoTB(), w.Client, cr, nova)
	})

	It("does not change a Nova of another owner, and continues when it is deleted", func() {
		start(nil)
		nova.Spec = novav1.NovaSpec{
			ContainerImage: "other", Database: cr.Spec.Database, MessageBus: cr.Spec.MessageBus, Identity: cr.Spec.Identity, NovaTemplate: cr.Spec.Nova,
		}
		w.Create(nova)
		w.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionNovaReady, engine.ReasonConflict, "Nova demo exists and was not created by this operator")
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.ContainerImage).To(Equal("other"))
		w.Delete(nova, metav1.DeletePropagationBackground)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	})

	Describe("with shared volumes", func() {
		const hold = "storage.asterism.dev/held-by-the-test"
		var images, keys *storagev1.SharedVolume

		BeforeEach(func() {
			images, keys = &storagev1.SharedVolume{ObjectMeta: named("images")}, &storagev1.SharedVolume{ObjectMeta: named("keys")}
			for _, name := range []string{"images", "keys"} {
				cr.Spec.SharedVolumes = append(cr.Spec.SharedVolumes, metav1alpha1.SharedVolumeTemplate{
					Name:             name,
					SharedVolumeSpec: storagev1.SharedVolumeSpec{FileSystemID: "fs-484648c8", AccessPointID: "fsap-0000000a"},
				})
			}
			images.Namespace, keys.Namespace, nova.Namespace = w.Namespace, w.Namespace, w.Namespace
			start(nil)
		})
		startVolumes := func(report func(engine.Object) (condition, message string)) {
			enginetest.Sibling{Kind: images, Report: report}.Start(GinkgoTB(), w.Namespace, subject.AddToScheme...)
		}

		It("creates, changes and deletes SharedVolumes as the list changes", func() {
			startVolumes(nil)
			w.Create(cr)
			enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
			enginetest.Await(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionSharedVolumesReady, metav1.ConditionTrue)
			Expect(cr.Status.SharedVolumes).To(HaveExactElements(
				metav1alpha1.SharedVolumeStatus{Name: "images", Ready: metav1.ConditionTrue},
				metav1alpha1.SharedVolumeStatus{Name: "keys", Ready: metav1.ConditionTrue},
			))
			Expect(w.Operator.Requests.Of("apply", "sharedvolumes")).To(HaveLen(2))

			w.Operator.Requests.Reset()
			w.Change(cr, func() { cr.Spec.SharedVolumes[1].AccessPointID = "fsap-0000000b" })
			enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
			Expect(w.Read(keys)).To(BeTrue())
			Expect(keys.Spec.AccessPointID).To(BeEquivalentTo("fsap-0000000b"))
			Expect(w.Operator.Requests.Of("apply", "sharedvolumes")).To(HaveLen(1))

			w.Change(cr, func() { cr.Spec.SharedVolumes = cr.Spec.SharedVolumes[:1] })
			enginetest.AwaitGone(GinkgoTB(), w.Client, keys)
			w.Change(cr, func() { cr.Spec.SharedVolumes = nil })
			enginetest.AwaitGone(GinkgoTB(), w.Client, images)
			enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
			Eventually(func(g Gomega) {
				g.Expect(w.Read(cr)).To(BeTrue())
				g.Expect(meta.FindStatusCondition(cr.Status.Conditions, metav1alpha1.ConditionSharedVolumesReady)).To(BeNil())
				g.Expect(cr.Status.SharedVolumes).To(BeEmpty())
			}).WithTimeout(2 * time.Minute).Should(Succeed())
		})

		It("reports a SharedVolume that waits, and stays available", func() {
			startVolumes(func(obj engine.Object) (condition, message string) {
				if obj.GetName() == "keys" {
					return commonv1.ConditionReady, "no policy grants it"
				}
				return "", ""
			})
			w.Create(cr)
			enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionSharedVolumesReady, engine.ReasonWaiting, "SharedVolume keys: no policy grants it")
			enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonWaiting, "SharedVolume keys")
			enginetest.Await(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionNovaReady, metav1.ConditionTrue)
			enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
			Eventually(func(g Gomega) {
				g.Expect(w.Read(cr)).To(BeTrue())
				g.Expect(cr.Status.SharedVolumes).To(HaveExactElements(
					metav1alpha1.SharedVolumeStatus{Name: "images", Ready: metav1.ConditionTrue},
					metav1alpha1.SharedVolumeStatus{Name: "keys", Ready: metav1.ConditionFalse, Message: "no policy grants it"},
				))
			}).WithTimeout(2 * time.Minute).Should(Succeed())
		})

		It("does not change a SharedVolume of another owner, also on deletion", func() {
			startVolumes(nil)
			images.Spec = storagev1.SharedVolumeSpec{FileSystemID: "fs-0000000f", AccessPointID: "fsap-0000000f"}
			w.Create(images)
			w.Create(cr)
			enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionSharedVolumesReady, engine.ReasonConflict, "SharedVolume images exists and was not created by this operator")
			w.Delete(cr, metav1.DeletePropagationBackground)
			enginetest.AwaitGone(GinkgoTB(), w.Client, cr)
			Expect(w.Read(images)).To(BeTrue())
			Expect(images.DeletionTimestamp).To(BeNil())
			Expect(images.Spec.FileSystemID).To(BeEquivalentTo("fs-0000000f"))
		})

		It("is deleted after the SharedVolumes, which do not delay the deletion of the Nova", func() {
			startVolumes(nil)
			w.Create(cr)
			enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
			w.Change(keys, func() { keys.Finalizers = append(keys.Finalizers, hold) })
			w.Delete(cr, metav1.DeletePropagationBackground)
			enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonDeleting, "SharedVolume keys is being deleted", hold)
			enginetest.AwaitGone(GinkgoTB(), w.Client, nova, images)
			w.Change(keys, func() { keys.Finalizers = nil })
			enginetest.AwaitGone(GinkgoTB(), w.Client, keys, cr)
			w.AwaitNothing(cr.UID, Service.Owns...)
		})
	})

	DescribeTable("is deleted after the Nova", func(policy metav1.DeletionPropagation) {
		start(nil)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		const hold = "nova.asterism.dev/held-by-the-test"
		w.Change(nova, func() { nova.Finalizers = append(nova.Finalizers, hold) })
		w.Delete(cr, policy)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonDeleting, "Nova demo is being deleted", hold)
		w.Change(nova, func() { nova.Finalizers = nil })
		enginetest.AwaitGone(GinkgoTB(), w.Client, nova, cr)
		w.AwaitNothing(cr.UID, Service.Owns...)
	},
		Entry("in the background", metav1.DeletePropagationBackground),
		Entry("in the foreground", metav1.DeletePropagationForeground),
	)
})
