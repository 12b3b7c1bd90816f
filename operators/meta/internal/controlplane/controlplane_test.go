package controlplane

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

var subject = enginetest.Subject[*metav1alpha1.ControlPlane]{
	Service:     Service,
	AddToScheme: []func(*runtime.Scheme) error{metav1alpha1.AddToScheme, novav1.AddToScheme},
	Conditions:  metav1alpha1.ControlPlaneConditions,
	CRDs:        []string{"../../../nova/config/crd"},
}

func TestControlPlane(t *testing.T) {
	subject.Test(t)
	enginetest.Role(t, "../../config/rbac/role.yaml", subject)
}

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "ControlPlane")
}

// sample works alone: what it names is looked at by Nova.
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
		enginetest.InstallCRDs(GinkgoTB(), "../../config/crd", "../../../nova/config/crd")
		w = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{}, subject.AddToScheme...)
		cr = sample()
		nova = &novav1.Nova{ObjectMeta: named(cr.Name)}
	})
	play := func(report func(engine.Object) (condition, message string)) {
		enginetest.Sibling{Kind: nova, Conditions: []string{commonv1.ConditionAvailable}, Report: report}.
			Start(GinkgoTB(), w.Namespace, subject.AddToScheme...)
		w.Run(Service)
	}

	It("makes a Nova and the metadata Secret, and nothing else", func() {
		play(nil)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(cr.Status.Nova).To(HaveValue(And(HaveField("Name", "demo"), HaveField("Ready", metav1.ConditionTrue))))
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		Expect(w.Operator.Requests.Of("apply", "novas")).To(HaveLen(1))
		Expect(w.Operator.Requests.Of("apply", "secrets")).To(HaveLen(1))

		shared := &corev1.Secret{ObjectMeta: named(cr.Name + "-metadata")}
		Expect(w.Read(shared)).To(BeTrue())
		Expect(shared.Data).To(HaveKeyWithValue("sharedSecret", Not(BeEmpty())))
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.MetadataSecretRef.Name).To(Equal(shared.Name))

		w.Operator.Requests.Reset()
		w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/openstack/nova:next" })
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.ContainerImage).To(Equal("quay.example/openstack/nova:next"))
		Expect(w.Operator.Requests.Of("apply", "secrets")).To(BeEmpty(), "a shared secret is never changed again")
	})

	It("says of the Nova what the Nova says", func() {
		play(func(obj engine.Object) (condition, message string) {
			reported := obj.(*novav1.Nova) //nolint:forcetypeassert // it is the kind
			reported.Status.ReadyCells = "0/1"
			return commonv1.ConditionReady, "NovaCell demo-cell1: Secret x does not exist"
		})
		w.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionNovaReady, engine.ReasonWaiting, "Nova demo: NovaCell demo-cell1: Secret x does not exist")
		enginetest.Await(GinkgoTB(), w.Client, cr, commonv1.ConditionAvailable, metav1.ConditionTrue)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonWaiting, "Secret x does not exist")
		Expect(cr.Status.Nova.ReadyCells).To(Equal("0/1"))
	})

	It("leaves alone a Nova that is somebody else's, and goes on when it is gone", func() {
		play(nil)
		nova.Spec = novav1.NovaSpec{
			ContainerImage: "mine", Database: cr.Spec.Database, MessageBus: cr.Spec.MessageBus, Identity: cr.Spec.Identity, NovaTemplate: cr.Spec.Nova,
		}
		w.Create(nova)
		w.Create(cr)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, metav1alpha1.ConditionNovaReady, engine.ReasonConflict, "Nova demo exists and was not made by this operator")
		Expect(w.Read(nova)).To(BeTrue())
		Expect(nova.Spec.ContainerImage).To(Equal("mine"))
		w.Delete(nova, metav1.DeletePropagationBackground)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	})

	DescribeTable("goes only when the Nova is gone", func(policy metav1.DeletionPropagation) {
		play(nil)
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
