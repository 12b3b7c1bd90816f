package tree

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Reasons of this package, for states that no operator has reported.
const (
	reasonNoStatus = "NoStatus"
	reasonOutdated = "Outdated"
)

// Reasons of the operators.
const (
	reasonProgressing = "Progressing"
	reasonJobFailed   = "JobFailed"
	reasonPaused      = "Paused"
)

// State is the state of an object.
type State struct {
	Ready   metav1.ConditionStatus
	Short   string // for a table: pods of a workload, result of a Job, or Ready
	Reason  string
	Message string
}

// StateOf returns the state of an object: its condition Ready, or for a kind of Kubernetes
// the state by Kubernetes' own conventions.
func StateOf(o *unstructured.Unstructured) State {
	if IsOwn(o) {
		return ownState(o)
	}
	state := State{Ready: metav1.ConditionFalse}
	result, err := status.Compute(o)
	switch {
	case err != nil:
		state.Ready, state.Message = metav1.ConditionUnknown, err.Error()
	case isJob(o): // by the conventions, a running Job is ready
		state.Message = "running"
		if Condition(o, "Complete").Status == metav1.ConditionTrue {
			state.Ready, state.Message = metav1.ConditionTrue, ""
		} else if failed := Condition(o, "Failed"); failed.Status == metav1.ConditionTrue {
			state.Reason, state.Message = failed.Reason, failed.Message
		}
	case result.Status == status.CurrentStatus && phase(o) != "Failed": // by the conventions, a failed pod is ready
		state.Ready = metav1.ConditionTrue
	default:
		state.Message = cmp.Or(result.Message, string(result.Status))
	}
	state.Short = short(o, state)
	return state
}

// ownState reads the condition Ready. Its operator writes it for the generation in
// status.observedGeneration.
func ownState(o *unstructured.Unstructured) State {
	ready := Condition(o, commonv1.ConditionReady)
	state := State{Ready: ready.Status, Reason: ready.Reason, Message: ready.Message}
	seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	switch {
	case ready.Type == "":
		state = State{Ready: metav1.ConditionUnknown, Reason: reasonNoStatus, Message: WithoutStatus(o)}
	case seen < o.GetGeneration():
		state = State{
			Ready: metav1.ConditionUnknown, Reason: reasonOutdated,
			Message: fmt.Sprintf("its operator has not seen generation %d: look at the log of the operator", o.GetGeneration()),
		}
	case state.Ready == metav1.ConditionTrue:
		state.Reason, state.Message = "", ""
	}
	state.Short = string(state.Ready)
	return state
}

// IsPaused tells whether spec.paused of an object, or of one above it, stops its operator. Above a paused
// object, Ready is False with the same reason.
func IsPaused(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	ready := Condition(o, commonv1.ConditionReady)
	return paused || ready.Status == metav1.ConditionUnknown && ready.Reason == reasonPaused
}

// firstStatus is the time in which an operator that runs has written the status of a new object.
const firstStatus = 15 * time.Second

// WithoutStatus is the message of an object of ours that has no condition yet.
func WithoutStatus(o metav1.Object) string {
	if age := time.Since(o.GetCreationTimestamp().Time); age < firstStatus {
		return fmt.Sprintf("created %s ago, no status yet", age.Round(time.Second))
	}
	return "no status: check that its operator runs, and that the namespace is handed over to it"
}

func short(o *unstructured.Unstructured, state State) string {
	number := func(path ...string) int64 { n, _, _ := unstructured.NestedInt64(o.Object, path...); return n }
	switch o.GetKind() {
	case "Deployment", "StatefulSet":
		desired, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !set {
			desired = 1
		}
		return fmt.Sprintf("%d/%d", number("status", "readyReplicas"), desired)
	case "DaemonSet":
		return fmt.Sprintf("%d/%d", number("status", "numberReady"), number("status", "desiredNumberScheduled"))
	case "Job":
		for _, end := range []string{"Complete", "Failed"} {
			if Condition(o, end).Status == metav1.ConditionTrue {
				return end
			}
		}
		return "Running"
	}
	return string(state.Ready)
}

// Conditions returns the conditions of an object, in the order of its status.
func Conditions(o *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []metav1.Condition
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		condition := metav1.Condition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition); err == nil {
			all = append(all, condition)
		}
	}
	return all
}

// Condition returns the condition of a type, without a type if the object has none.
func Condition(o *unstructured.Unstructured, name string) metav1.Condition {
	for _, c := range Conditions(o) {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{}
}

func isJob(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" }

func phase(o *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return text
}
