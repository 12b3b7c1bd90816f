package compute

import (
	"sync/atomic"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "NovaCompute")
}

const sample = "../../config/samples/fake.yaml"

var _ = Describe("NovaCompute", func() {
	var (
		w       *enginetest.World
		cr      *novav1.NovaCompute
		servers atomic.Int32
	)
	set := &appsv1.StatefulSet{}
	BeforeEach(func() {
		servers.Store(0)
		enginetest.InstallCRDs(GinkgoTB(), "../../config/crd")
		w = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{Job: func(pod *corev1.Pod) (int32, string) {
			if pod.Spec.Containers[0].Name == stepEmpty && servers.Load() > 0 {
				return 1, "servers on host cell1-fake: 1"
			}
			return 0, "done"
		}}, novav1.AddToScheme)
		secret := &corev1.Secret{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(enginetest.ReadSample(GinkgoTB(), sample, "Secret").Object, secret)).To(Succeed())
		cr = &novav1.NovaCompute{}
		enginetest.DecodeSample(GinkgoTB(), sample, "NovaCompute", cr)
		w.Create(secret)
		w.Run(Service)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		set.Name = cr.Name
	})

	It("stops its pod when no server is left, and is deleted with all its children", func() {
		servers.Store(1)
		w.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonJobFailed, "Emptied: ", "servers on host cell1-fake: 1")
		Expect(w.Read(set)).To(BeTrue())
		Expect(set.DeletionTimestamp).To(BeNil(), "the compute runs for its server")
		servers.Store(0)
		enginetest.AwaitGone(GinkgoTB(), w.Client, set, cr)
		w.AwaitNothing(cr.UID, Service.Owns...)
	})

	It("waits for its servers also after a deletion in the foreground", func() {
		servers.Store(1)
		w.Delete(cr, metav1.DeletePropagationForeground)
		enginetest.AwaitGone(GinkgoTB(), w.Client, set)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonJobFailed, "Emptied: ", "servers on host cell1-fake: 1")
		servers.Store(0)
		enginetest.AwaitGone(GinkgoTB(), w.Client, cr)
		w.AwaitNothing(cr.UID, Service.Owns...)
	})
})
