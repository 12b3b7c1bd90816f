package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// state is the readiness of an object, with the reason if it is not ready.
type state struct {
	ready   bool
	message string
}

// readiness returns the state of an object by Kubernetes' own conventions.
func readiness(o *unstructured.Unstructured) state {
	if isAsterismKind(o) && len(conditions(o)) == 0 {
		return state{message: "its operator has not set a condition yet"}
	}
	// By the conventions a running Job and a failed pod are Current, but the demo waits for completion.
	if o.GetKind() == kindJob && condition(o, "Failed").status != "True" {
		return state{ready: condition(o, "Complete").status == "True", message: "running"}
	}
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); o.GetKind() == kindPod && phase == "Failed" {
		return state{message: "the pod failed"}
	}
	result, err := status.Compute(o)
	if err != nil {
		return state{message: err.Error()}
	}
	return state{ready: result.Status == status.CurrentStatus, message: result.Message}
}

// isAsterismKind reports whether the kind is one of Asterism's.
func isAsterismKind(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GroupVersionKind().Group, group)
}

// conditionState is a condition of an object; zero if the object has none of that type.
type conditionState struct{ kind, status, reason, message string }

func (c conditionState) String() string {
	text := fmt.Sprintf("%s=%s", c.kind, c.status)
	if c.reason != "" {
		text += " " + c.reason
	}
	if c.message != "" {
		text += ": " + c.message
	}
	return text
}

func conditions(o *unstructured.Unstructured) []conditionState {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var all []conditionState
	for _, entry := range list {
		fields, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string { value, _ := fields[name].(string); return value }
		all = append(all, conditionState{text("type"), text("status"), text("reason"), text("message")})
	}
	return all
}

func condition(o *unstructured.Unstructured, kind string) conditionState {
	for _, c := range conditions(o) {
		if c.kind == kind {
			return c
		}
	}
	return conditionState{}
}
