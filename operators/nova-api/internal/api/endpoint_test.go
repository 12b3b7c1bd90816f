package api

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"

	novav1 "asterism.dev/operators/nova-api/api/v1alpha1"
)

// admit returns a change of a Route's status, as a router makes it.
func admit(route *routev1.Route, host string) func() {
	return func() {
		route.Status.Ingress = []routev1.RouteIngress{{
			Host:       host,
			Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue}},
		}}
	}
}

// publishesRoute uses the sample without changes: exposure Automatic, Routes are served.
func publishesRoute() {
	enginetest.InstallExposures(GinkgoTB())
	sample := subject
	sample.Vary = nil
	w := sample.NewWorld(enginetest.Kubelet{})
	cr := sample.Object()
	w.Create(cr)
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionEndpointReady, engine.ReasonProgressing, "not admitted by any router")
	internal := commonv1.Endpoint{Interface: commonv1.InterfaceInternal, URL: "http://api." + w.Namespace + ".svc.cluster.local:8774/v2.1"}
	Expect(cr.Status.Endpoints).To(ConsistOf(internal), "no public address before the Route is admitted")

	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	refused := routev1.RouteIngress{
		Host: "api.taken.example.org", RouterName: "inner",
		Conditions: []routev1.RouteIngressCondition{{
			Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse, Reason: "HostAlreadyClaimed", Message: "route taken already exposes it",
		}},
	}
	w.ChangeStatus(route, func() { route.Status.Ingress = []routev1.RouteIngress{refused} })
	const message = "Route api: router inner does not admit host api.taken.example.org: route taken already exposes it"
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionEndpointReady, engine.ReasonWaiting, message)
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, commonv1.ConditionReady, engine.ReasonWaiting, message)
	Expect(cr.Status.Endpoints).To(ConsistOf(internal), "the refused host belongs to another Route")

	w.ChangeStatus(route, func() {
		admit(route, "api.apps.example.org")()
		route.Status.Ingress = append([]routev1.RouteIngress{refused}, route.Status.Ingress...)
	})
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(cr.Status.Endpoints).To(Equal([]commonv1.Endpoint{
		{Interface: commonv1.InterfacePublic, URL: "https://api.apps.example.org/v2.1"},
		internal,
	}))
}

func changesExposure() {
	enginetest.InstallExposures(GinkgoTB())
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	internal := "http://api." + w.Namespace + ".svc.cluster.local:8774/v2.1"
	Expect(cr.Status.Endpoints).To(HaveEach(HaveField("URL", internal)))
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	Expect(w.Read(route)).To(BeFalse())

	w.Operator.Requests.Reset()
	w.Change(cr, func() { cr.Spec.Exposure.Type = commonv1.ExposureRoute })
	enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionEndpointReady, engine.ReasonProgressing)
	w.ChangeStatus(route, admit(route, "api.apps.example.org"))
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(cr.Status.Endpoints[0].URL).To(Equal("https://api.apps.example.org/v2.1"))

	w.Change(cr, func() { cr.Spec.Exposure.Hostname = "api.example.org" })
	Eventually(func() string { w.Read(route); return route.Spec.Host }).WithTimeout(time.Minute).Should(Equal("api.example.org"))
	former := route.UID
	w.Change(cr, func() { cr.Spec.Exposure.Hostname = "" })
	Eventually(func() bool { return w.Read(route) && route.UID != former }).WithTimeout(time.Minute).Should(BeTrue(), "OpenShift keeps the host of a Route")
	Expect(route.Spec.Host).To(BeEmpty())
	w.ChangeStatus(route, admit(route, "api.apps.example.org"))
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)

	w.Change(cr, func() { cr.Spec.Exposure.Type = commonv1.ExposureNone })
	enginetest.AwaitGone(GinkgoTB(), w.Client, route)
	enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
	Expect(cr.Status.Endpoints[0].URL).To(Equal(internal))
	Expect(w.Written()).NotTo(ContainElement(ContainSubstring(" deployments ")), "a change of the exposure restarts no pods")
}

// changesType writes the statuses that an ingress controller, a Gateway and a cloud write.
func changesType() {
	enginetest.InstallExposures(GinkgoTB())
	w := subject.NewWorld(enginetest.Kubelet{})
	cr := w.Ready()
	expose := func(exposure commonv1.Exposure, message string, object client.Object, admit func(), url string) {
		GinkgoHelper()
		w.Change(cr, func() { cr.Spec.Exposure = exposure })
		before := cr.Status.Endpoints
		enginetest.AwaitReason(GinkgoTB(), w.Client, cr, novav1.ConditionEndpointReady, engine.ReasonProgressing, message)
		Expect(cr.Status.Endpoints).To(Equal(before), "the former address stays")
		w.ChangeStatus(object, admit)
		enginetest.AwaitReady(GinkgoTB(), w.Client, cr)
		Expect(cr.Status.Endpoints[0]).To(Equal(commonv1.Endpoint{Interface: commonv1.InterfacePublic, URL: url}))
	}

	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	expose(commonv1.Exposure{Type: commonv1.ExposureIngress, Hostname: "api.example.org"}, "Ingress api has no address yet", ingress, func() {
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	}, "http://api.example.org/v2.1")

	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: cr.Name}}
	gateway := commonv1.Exposure{Type: commonv1.ExposureGateway, Hostname: "api.example.org", ParentRef: &commonv1.GatewayReference{Name: "public"}}
	expose(gateway, "HTTPRoute api is not accepted by its Gateway yet", route, func() {
		route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: gatewayv1.ParentReference{Name: "public"}, ControllerName: "example.org/gateway"}}
		for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			meta.SetStatusCondition(&route.Status.Parents[0].Conditions, metav1.Condition{
				Type: string(kind), Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: route.Generation,
			})
		}
	}, "https://api.example.org/v2.1")
	enginetest.AwaitGone(GinkgoTB(), w.Client, ingress)

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: cr.Name + "-public"}}
	expose(commonv1.Exposure{Type: commonv1.ExposureLoadBalancer}, "Service api-public has no address of a load balancer yet", service, func() {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.org"}}
	}, "http://lb.example.org:8774/v2.1")
	enginetest.AwaitGone(GinkgoTB(), w.Client, route)
}
