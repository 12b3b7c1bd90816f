package apply

import (
	"slices"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// asterismObject is an object of a kind of Asterism: its status has a condition Ready.
type asterismObject interface {
	client.Object
	Common() *commonv1.Status
}

// Incomplete returns nil if the object is complete, for example rolled out, or an outcome
// with the cause. An object that no controller changes further is complete when it exists.
// So is a PersistentVolumeClaim, because it may wait for its first consumer.
func Incomplete(obj client.Object) error {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		return rolledOut("StatefulSet", obj, obj.Status.ObservedGeneration, rollout{
			want: replicas(obj.Spec.Replicas), all: obj.Status.Replicas, updated: updatedReplicas(obj), available: obj.Status.AvailableReplicas,
		})
	case *appsv1.Deployment:
		return rolledOut("Deployment", obj, obj.Status.ObservedGeneration, rollout{
			want: replicas(obj.Spec.Replicas), all: obj.Status.Replicas, updated: obj.Status.UpdatedReplicas, available: obj.Status.AvailableReplicas,
		})
	case *appsv1.DaemonSet:
		want := obj.Status.DesiredNumberScheduled
		return rolledOut("DaemonSet", obj, obj.Status.ObservedGeneration, rollout{
			want: want, all: want, updated: obj.Status.UpdatedNumberScheduled, available: obj.Status.NumberAvailable,
		})
	case *batchv1.Job:
		if finished, failed := jobEnd(obj); finished == nil || failed {
			return progressing("Job %s is not complete", obj.Name)
		}
	case *routev1.Route:
		return admitted(obj)
	case *networkingv1.Ingress:
		if len(obj.Status.LoadBalancer.Ingress) == 0 {
			return progressing("Ingress %s has no address yet", obj.Name)
		}
	case *gatewayv1.HTTPRoute:
		return accepted(obj)
	case *corev1.Service:
		if obj.Spec.Type == corev1.ServiceTypeLoadBalancer && len(obj.Status.LoadBalancer.Ingress) == 0 {
			return progressing("Service %s has no address of a load balancer yet", obj.Name)
		}
	case asterismObject:
		return childReady(obj)
	}
	return nil
}

type rollout struct{ want, all, updated, available int32 }

func rolledOut(kind string, obj client.Object, observed int64, r rollout) error {
	switch {
	case observed < obj.GetGeneration():
		return progressing("%s %s: generation %d is not observed yet", kind, obj.GetName(), obj.GetGeneration())
	case r.updated < r.want:
		return progressing("%s %s: %d of %d pods updated", kind, obj.GetName(), r.updated, r.want)
	case r.all > r.want:
		return progressing("%s %s: %d pods to be deleted", kind, obj.GetName(), r.all-r.want)
	case r.available < r.want:
		return progressing("%s %s: %d of %d pods available", kind, obj.GetName(), r.available, r.want)
	}
	return nil
}

// updatedReplicas counts the pods of the newest revision. The field of that name in a
// StatefulSet's status is 0 while no update is in progress.
func updatedReplicas(set *appsv1.StatefulSet) int32 {
	if set.Status.CurrentRevision == set.Status.UpdateRevision {
		return set.Status.Replicas
	}
	return set.Status.UpdatedReplicas
}

func replicas(want *int32) int32 {
	if want == nil {
		return 1
	}
	return *want
}

// admitted returns an outcome while no router admits the Route. If a router refuses the
// Route, the outcome has the router's message.
func admitted(route *routev1.Route) error {
	var refused error
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			switch {
			case condition.Type != routev1.RouteAdmitted:
			case condition.Status == corev1.ConditionTrue:
				return nil
			case refused == nil && condition.Message != "":
				refused = waiting("Route %s: router %s does not admit host %s: %s", route.Name, ingress.RouterName, ingress.Host, condition.Message)
			}
		}
	}
	if refused != nil {
		return refused
	}
	return progressing("Route %s is not admitted by any router yet", route.Name)
}

// accepted returns an outcome while no Gateway of the spec accepts the HTTPRoute. If a Gateway
// refuses the HTTPRoute, the outcome has the Gateway's message. The status may also have entries of
// former Gateways, and of controllers that add policies and accept nothing.
func accepted(route *gatewayv1.HTTPRoute) error {
	var answer error = progressing("HTTPRoute %s is not accepted by its Gateway yet", route.Name)
	for _, parent := range route.Status.Parents {
		isParent := slices.ContainsFunc(route.Spec.ParentRefs, func(wanted gatewayv1.ParentReference) bool {
			return nameOfParent(wanted, route.Namespace) == nameOfParent(parent.ParentRef, route.Namespace)
		})
		if !isParent || meta.FindStatusCondition(parent.Conditions, string(gatewayv1.RouteConditionAccepted)) == nil {
			continue
		}
		if answer = acceptedBy(parent, route); answer == nil {
			return nil
		}
	}
	return answer
}

// nameOfParent returns namespace, name and section of a Gateway.
func nameOfParent(ref gatewayv1.ParentReference, namespace string) [3]string {
	return [3]string{string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))), string(ref.Name), string(ptr.Deref(ref.SectionName, ""))}
}

func acceptedBy(parent gatewayv1.RouteParentStatus, route *gatewayv1.HTTPRoute) error {
	for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		found := meta.FindStatusCondition(parent.Conditions, string(kind))
		if found == nil || found.ObservedGeneration != route.Generation {
			return progressing("HTTPRoute %s: Gateway %s does not report %s yet", route.Name, parent.ParentRef.Name, kind)
		}
		if found.Status != metav1.ConditionTrue {
			return waiting("HTTPRoute %s: Gateway %s: %s", route.Name, parent.ParentRef.Name, found.Message)
		}
	}
	return nil
}

// childReady judges a child of an Asterism kind by its own Ready, once that reports the
// newest generation.
func childReady(child asterismObject) error {
	kind := child.GetObjectKind().GroupVersionKind().Kind
	status := child.Common()
	if status.ObservedGeneration != child.GetGeneration() {
		return progressing("%s %s: its operator has not seen generation %d yet", kind, child.GetName(), child.GetGeneration())
	}
	ready := meta.FindStatusCondition(status.Conditions, commonv1.ConditionReady)
	switch {
	case ready == nil:
		return progressing("%s %s does not report Ready yet", kind, child.GetName())
	case ready.Status != metav1.ConditionTrue:
		return &Outcome{Reason: ready.Reason, Message: kind + " " + child.GetName() + ": " + ready.Message, ofChild: true}
	}
	return nil
}

// jobEnd returns the condition that reports the end of a Job, nil before the end.
func jobEnd(job *batchv1.Job) (end *batchv1.JobCondition, failed bool) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet: // the latter is set a second earlier, and final
			return &condition, false
		case batchv1.JobFailed:
			return &condition, true
		}
	}
	return nil, false
}
