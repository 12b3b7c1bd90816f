package compute

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

// enforce sets the label of the world's namespace as an administrator does, to JSON; null removes
// the label.
func enforce(w *enginetest.World, level string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": %s}}}`, level))
	Expect(w.Client.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}, patch)).To(Succeed())
}

// The API server admits privileged pods in a namespace without the label.
var _ = Describe("A compute that runs programs of its node", func() {
	var (
		w   *enginetest.World
		cr  *novav1.NovaCompute
		set *appsv1.DaemonSet
	)
	refused := func(level string) {
		GinkgoHelper()
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionInputsReady, engine.ReasonWaiting,
			"Namespace "+w.Namespace, level, "kubectl label namespace "+w.Namespace+" pod-security.kubernetes.io/enforce=privileged --overwrite")
	}
	BeforeEach(func() {
		enginetest.InstallCRDs(GinkgoTB(), "../../config/crd")
		w = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{}, novav1.AddToScheme)
		secret := &corev1.Secret{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(enginetest.ReadSample(GinkgoTB(), sample, "Secret").Object, secret)).To(Succeed())
		secret.Namespace = w.Namespace
		cr = &novav1.NovaCompute{}
		enginetest.DecodeSample(GinkgoTB(), "../../config/samples/libvirt.yaml", "NovaCompute", cr)
		cr.Namespace = w.Namespace
		set = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
		w.Run(Service)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "asterism-run-on-host", Namespace: w.Namespace}}
		editor := enginetest.Editor(GinkgoTB(), w.Namespace, []string{novav1.GroupVersion.Group}, novav1.AddToScheme)
		for _, object := range []client.Object{account, secret, cr} {
			Expect(editor.Create(context.Background(), object)).To(Succeed())
		}
	})

	It("is refused to an editor of a namespace without the label, and of one with another level", func() {
		refused("has no label pod-security.kubernetes.io/enforce")
		Expect(w.Read(set)).To(BeFalse())
		enforce(w, `"baseline"`)
		refused("=baseline")
		Expect(w.Read(set)).To(BeFalse())
	})

	It("is created with the label, and keeps what runs, unchanged, when the label is removed", func() {
		enforce(w, `"privileged"`)
		enginetest.Eventually(GinkgoTB(), "the DaemonSet exists", func() error {
			return w.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: set.Name}, set)
		})
		created := set.DeepCopy()
		enforce(w, "null")
		w.Change(cr, func() { cr.Spec.ContainerImage = "quay.example/of/the/editor:1" })
		refused("has no label")
		Consistently(func(g Gomega) {
			g.Expect(w.Read(set)).To(BeTrue())
			g.Expect(set.DeletionTimestamp).To(BeNil())
			g.Expect(set.Spec).To(Equal(created.Spec))
		}).WithTimeout(2 * time.Second).Should(Succeed())
		w.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitGone(GinkgoTB(), w.Client, cr, set)
	})
})
