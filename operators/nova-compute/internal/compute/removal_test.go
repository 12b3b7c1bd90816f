package compute

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-compute/api/v1alpha1"
)

const sample = "../../config/samples/fake.yaml"

// regionAndHosts returns the arguments of remove.py after the step and the object.
func regionAndHosts(pod *corev1.Pod) (string, []string) {
	command := pod.Spec.Containers[0].Command
	step := slices.Index(command, pod.Spec.Containers[0].Name)
	return command[step+2], command[step+3:]
}

var _ = Describe("NovaCompute", func() {
	var (
		w            *enginetest.World
		cr           *novav1.NovaCompute
		servers      atomic.Int32
		unregistered atomic.Value
		regions      atomic.Value
	)
	set := &appsv1.StatefulSet{}
	BeforeEach(func() {
		servers.Store(0)
		unregistered.Store([]string(nil))
		regions.Store([]string(nil))
		enginetest.InstallCRDs(GinkgoTB(), "../../config/crd")
		w = enginetest.NewWorld(GinkgoTB(), enginetest.Kubelet{Job: func(pod *corev1.Pod) (int32, string) {
			region, hosts := regionAndHosts(pod)
			regions.Store(append(regions.Load().([]string), region)) //nolint:forcetypeassert // stored above
			switch {
			case pod.Spec.Containers[0].Name == stepUnregister:
				unregistered.Store(hosts)
				return 0, "done"
			case servers.Load() > 0:
				return 1, "servers on host cell1-fake: 1"
			}
			return 0, strings.Join(hosts, " ")
		}}, novav1.AddToScheme)
		secret := &corev1.Secret{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(enginetest.ReadSample(GinkgoTB(), sample, "Secret").Object, secret)).To(Succeed())
		cr = &novav1.NovaCompute{}
		enginetest.DecodeSample(GinkgoTB(), sample, "NovaCompute", cr)
		secret.StringData["region"] = "RegionTwo"
		w.Create(secret)
		w.Run(Service)
		w.Create(cr)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		set.Name = cr.Name
	})

	It("stops its pod when no server is left, and is deleted with all its children", func() {
		Expect(cr.Status.Hosts).To(Equal([]string{cr.Name}))
		servers.Store(1)
		w.Delete(cr, metav1.DeletePropagationBackground)
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonJobFailed, "Emptied: ", "servers on host cell1-fake: 1")
		Expect(w.Read(set)).To(BeTrue())
		Expect(set.DeletionTimestamp).To(BeNil(), "the compute runs for its server")
		servers.Store(0)
		enginetest.AwaitGone(GinkgoTB(), w.Client, set, cr)
		w.AwaitNothing(cr.UID, Service.Owns...)
		Expect(unregistered.Load()).To(Equal([]string{cr.Name}))
		Expect(regions.Load()).To(HaveEach("RegionTwo"), "not the region of Placement in the configuration")
	})

	It("unregisters the nodes of its pods, which are deleted before, with driver Libvirt", func() {
		libvirt := &novav1.NovaCompute{}
		enginetest.DecodeSample(GinkgoTB(), "../../config/samples/libvirt.yaml", "NovaCompute", libvirt)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-" + w.Namespace, Labels: libvirt.Spec.Libvirt.NodeSelector}}
		Expect(w.Client.Create(context.Background(), node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return w.Client.Delete(ctx, node) })
		// The API server taints a node that has no kubelet yet.
		Expect(w.Client.Patch(context.Background(), node, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"taints": null}}`)))).To(Succeed())
		enforce(w, `"privileged"`)
		w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "asterism-run-on-host"}}, libvirt)
		pod := podOf(w, libvirt.Name)
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
		Expect(w.Client.SubResource("binding").Create(context.Background(), &pod, binding)).To(Succeed(), "as the scheduler does")
		enginetest.AwaitReady(GinkgoTB(), w.Client, libvirt)
		Eventually(func() []string { w.Read(libvirt); return libvirt.Status.Hosts }).WithTimeout(2 * time.Minute).Should(Equal([]string{node.Name}))
		w.Delete(libvirt, metav1.DeletePropagationBackground)
		Eventually(func() bool { return w.Read(&pod) && pod.DeletionTimestamp != nil }).WithTimeout(2 * time.Minute).Should(BeTrue())
		Expect(w.Client.Delete(context.Background(), &pod, client.GracePeriodSeconds(0))).To(Succeed(), "as the kubelet does when the pod has ended")
		enginetest.AwaitGone(GinkgoTB(), w.Client, libvirt)
		Expect(unregistered.Load()).To(Equal([]string{node.Name}))
		events := &corev1.EventList{}
		Expect(w.Client.List(context.Background(), events, client.InNamespace(w.Namespace))).To(Succeed())
		Expect(events.Items).NotTo(ContainElement(HaveField("Reason", "LeftBehind")))
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

// podOf waits for the pod of a DaemonSet on one node.
func podOf(w *enginetest.World, name string) corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Eventually(func(g Gomega) {
		g.Expect(w.Client.List(context.Background(), pods, client.InNamespace(w.Namespace), client.MatchingLabels(engine.Selector("nova-compute", name)))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
	}).WithTimeout(2 * time.Minute).Should(Succeed())
	return pods.Items[0]
}
