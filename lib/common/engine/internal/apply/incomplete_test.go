package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestComplete(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x", Generation: 2}
	set := func(status appsv1.StatefulSetStatus) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}, Status: status}
	}
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: meta, Status: status}
	}
	daemons := func(status appsv1.DaemonSetStatus) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: meta, Status: status}
	}
	admission := func(status corev1.ConditionStatus) *routev1.Route {
		return &routev1.Route{ObjectMeta: meta, Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{{
			Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: status}},
		}}}}
	}
	for name, c := range map[string]struct {
		object client.Object
		want   string // message; "" for complete
	}{
		"a StatefulSet whose spec is not observed": {
			set(appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 3, AvailableReplicas: 3}), "StatefulSet x: generation 2 is not observed yet",
		},
		"a StatefulSet that is being updated": {
			set(appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3, CurrentRevision: "a", UpdateRevision: "b"}),
			"StatefulSet x: 1 of 3 pods updated",
		},
		"a StatefulSet that was updated": {
			set(appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, AvailableReplicas: 3, CurrentRevision: "b", UpdateRevision: "b"}), "",
		},
		"a StatefulSet with a pod that is not available": {
			set(appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, AvailableReplicas: 2, CurrentRevision: "b", UpdateRevision: "b"}),
			"StatefulSet x: 2 of 3 pods available",
		},
		"a StatefulSet that shrinks": {
			set(appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 4, AvailableReplicas: 4, CurrentRevision: "b", UpdateRevision: "b"}),
			"StatefulSet x: 1 pods to be deleted",
		},
		"a Deployment with one pod, by default": {
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}), "",
		},
		"a Deployment with an old pod": {
			deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2}), "Deployment x: 1 pods to be deleted",
		},
		"a DaemonSet on all nodes": {
			daemons(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}), "",
		},
		"a DaemonSet without an available pod on one node": {
			daemons(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 1}),
			"DaemonSet x: 1 of 2 pods available",
		},
		"a Job that failed": {
			&batchv1.Job{ObjectMeta: meta, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}},
			"Job x is not complete",
		},
		"a volume without a status":                 {&corev1.PersistentVolume{ObjectMeta: meta}, ""},
		"a claim that waits for its first consumer": {&corev1.PersistentVolumeClaim{ObjectMeta: meta}, ""},
		"a Route without a router":                  {&routev1.Route{ObjectMeta: meta}, "Route x is not admitted by any router yet"},
		"a Route refused without a message":         {admission(corev1.ConditionFalse), "Route x is not admitted by any router yet"},
		"a Route that a router admits":              {admission(corev1.ConditionTrue), ""},
		"an Ingress without a controller":           {&networkingv1.Ingress{ObjectMeta: meta}, "Ingress x has no address yet"},
		"a Service without a load balancer": {
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}, "Service x has no address of a load balancer yet",
		},
		"an HTTPRoute without a Gateway":        {&gatewayv1.HTTPRoute{ObjectMeta: meta}, "HTTPRoute x is not accepted by its Gateway yet"},
		"an HTTPRoute that was accepted":        {httpRoute(meta, metav1.ConditionTrue, 2), ""},
		"an HTTPRoute that was accepted before": {httpRoute(meta, metav1.ConditionTrue, 1), "HTTPRoute x: Gateway g does not report Accepted yet"},
		"a Service without a controller":        {&corev1.Service{ObjectMeta: meta}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Incomplete(c.object)
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(c.want))
			g.Expect(OutcomeOf(err).Reason).To(Equal(ReasonProgressing))
		})
	}
}

func TestOutcomeOfARefusedRouteHasTheRoutersMessage(t *testing.T) {
	g := NewWithT(t)
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{{
		RouterName: "inner", Host: "x.example.org",
		Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse, Message: "taken"}},
	}}}}
	err := Incomplete(route)
	g.Expect(err).To(MatchError("Route x: router inner does not admit host x.example.org: taken"))
	g.Expect(OutcomeOf(err).Reason).To(Equal(ReasonWaiting))
}

// httpRoute returns an HTTPRoute with the answer of Gateway g for a generation.
func httpRoute(meta metav1.ObjectMeta, status metav1.ConditionStatus, generation int64) *gatewayv1.HTTPRoute {
	answer := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: "g"}}
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		answer.Conditions = append(answer.Conditions, metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Message: "no listener"})
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: meta}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{answer.ParentRef}
	former := gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: "former"}, Conditions: answer.Conditions}
	policies := gatewayv1.RouteParentStatus{ParentRef: answer.ParentRef, Conditions: []metav1.Condition{{Type: "Affected", Status: metav1.ConditionTrue}}}
	route.Status.Parents = []gatewayv1.RouteParentStatus{former, policies, answer}
	return route
}

func TestOutcomeOfARefusedHTTPRouteHasTheGatewaysMessage(t *testing.T) {
	g := NewWithT(t)
	err := Incomplete(httpRoute(metav1.ObjectMeta{Name: "x", Generation: 2}, metav1.ConditionFalse, 2))
	g.Expect(err).To(MatchError("HTTPRoute x: Gateway g: no listener"))
	g.Expect(OutcomeOf(err).Reason).To(Equal(ReasonWaiting))
}
