package metadata

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-metadata/api/v1alpha1"
)

// reportsAddresses uses the sample, which has no exposure: then there is no public address, and
// no Route although Routes are served.
func reportsAddresses() {
	enginetest.InstallExposures(GinkgoTB())
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	internal := commonv1.Endpoint{Interface: commonv1.InterfaceInternal, URL: "http://" + cr.Name + "." + w.Namespace + ".svc.cluster.local:8775"}
	Expect(cr.Status.Endpoints).To(ConsistOf(internal))

	w.Operator.Requests.Reset()
	w.Change(cr, func() {
		cr.Spec.Exposure = commonv1.Exposure{Type: commonv1.ExposureIngress, Hostname: "metadata.example.org"}
	})
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionEndpointReady, engine.ReasonProgressing, "Ingress metadata has no address yet")
	Expect(cr.Status.Endpoints).To(ConsistOf(internal))
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	w.ChangeStatus(ingress, func() {
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	})
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(cr.Status.Endpoints).To(Equal([]commonv1.Endpoint{{Interface: commonv1.InterfacePublic, URL: "http://metadata.example.org"}, internal}))

	w.Change(cr, func() { cr.Spec.Exposure = commonv1.Exposure{Type: commonv1.ExposureNone} })
	enginetest.AwaitGone(GinkgoTB(), w.Client, ingress)
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(cr.Status.Endpoints).To(ConsistOf(internal))
	Expect(w.Written()).NotTo(ContainElement(ContainSubstring(" deployments ")), "a change of the exposure restarts no pods")
}
