package tree

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"

	"asterism.dev/cli/internal/mask"
)

// Cause is the state because of which an object is not ready: of the last object that no
// child blocks.
type Cause struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Condition string `json:"condition,omitempty"` // that is not True, if the object has conditions
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

// String returns one line.
func (c Cause) String() string {
	state := strings.Join(strings.Fields(c.Condition+" "+c.Reason), " ")
	return strings.TrimSuffix(strings.TrimSpace(fmt.Sprintf("%s/%s %s", c.Kind, c.Name, state))+": "+oneLine(c.Message), ": ")
}

// Path returns the objects from an object that is not ready down to the object that blocks
// it. A ready object has no path.
func (f *Forest) Path(o *unstructured.Unstructured) []*unstructured.Unstructured {
	if StateOf(o).Ready == metav1.ConditionTrue {
		return nil
	}
	path := []*unstructured.Unstructured{o}
	for next := f.blocking(o); next != nil && len(path) <= len(f.all); next = f.blocking(next) {
		path = append(path, next)
	}
	return path
}

// CauseOf returns the cause of the state of an object, nil for a ready object.
func (f *Forest) CauseOf(o *unstructured.Unstructured) *Cause {
	path := told(f.Path(o))
	if len(path) == 0 {
		return nil
	}
	return Explain(path[len(path)-1])
}

// told returns the path without a failed Job and the objects below it: the message of the
// object above has the end of the Job's output, which the Job does not have.
func told(path []*unstructured.Unstructured) []*unstructured.Unstructured {
	for i, o := range path {
		if isJob(o) && i > 0 && IsOwn(path[i-1]) && First(path[i-1]).Reason == reasonJobFailed {
			return path[:i]
		}
	}
	return path
}

// unavailable returns the cause because of which an object is not available: the condition of the
// lowest object that has it.
func (f *Forest) unavailable(o *unstructured.Unstructured) *Cause {
	for _, child := range f.children[o.GetUID()] {
		if IsOwn(child) && Condition(child, commonv1.ConditionAvailable).Status == metav1.ConditionFalse {
			return f.unavailable(child)
		}
	}
	c := Condition(o, commonv1.ConditionAvailable)
	return &Cause{Kind: o.GetKind(), Name: o.GetName(), Condition: c.Type, Reason: c.Reason, Message: masker.Text(c.Message)}
}

// blocking returns the child that blocks an object. Of Asterism's kinds that is the child in
// the message of the first condition that is not True, or else, if the reason tells of
// progress, the first child that is not ready. Of another kind it is the newest child that
// is not ready.
func (f *Forest) blocking(o *unstructured.Unstructured) *unstructured.Unstructured {
	var waiting []*unstructured.Unstructured
	for _, child := range f.children[o.GetUID()] {
		if StateOf(child).Ready != metav1.ConditionTrue {
			waiting = append(waiting, child)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if !IsOwn(o) {
		return waiting[len(waiting)-1]
	}
	if reason := StateOf(o).Reason; reason == reasonNoStatus || reason == reasonOutdated {
		return nil // a running operator comes first
	}
	first := First(o)
	if child := named(waiting, first.Message); child != nil {
		return child
	}
	if first.Reason == reasonProgressing || first.Reason == "" {
		return waiting[0]
	}
	return nil
}

// First returns the condition of an object of Asterism's kinds to look at: that of the stage that
// Ready repeats, or that of a ready object which is not available, or else the first that is not
// True, on which Ready need not depend. It is Ready if there is none.
func First(o *unstructured.Unstructured) metav1.Condition {
	ready := Condition(o, commonv1.ConditionReady)
	if available := Condition(o, commonv1.ConditionAvailable); ready.Status == metav1.ConditionTrue && available.Status == metav1.ConditionFalse {
		return available
	}
	first := ready
	for _, c := range Conditions(o) {
		if c.Status != metav1.ConditionFalse || c.Type == commonv1.ConditionAvailable || c.Type == commonv1.ConditionReady {
			continue
		}
		if c.Status == ready.Status && c.Reason == ready.Reason && c.Message == ready.Message {
			return c
		}
		if first.Type == ready.Type {
			first = c
		}
	}
	return first
}

// masker hides secrets that a program may have written into its termination message. The
// operators mask the messages of conditions themselves.
var masker = mask.New()

// Explain returns the state of an object that is not ready, without its children.
func Explain(o *unstructured.Unstructured) *Cause {
	cause := raw(o)
	cause.Message = masker.Text(cause.Message)
	return cause
}

func raw(o *unstructured.Unstructured) *Cause {
	state := StateOf(o)
	cause := &Cause{Kind: o.GetKind(), Name: o.GetName(), Reason: state.Reason, Message: state.Message}
	switch {
	case IsOwn(o):
		if state.Reason != reasonNoStatus && state.Reason != reasonOutdated {
			first := First(o)
			cause.Condition, cause.Reason, cause.Message = first.Type, first.Reason, first.Message
		}
	case o.GetKind() == "Pod":
		if trouble := TroubleOf(o).String(); trouble != "" {
			cause.Message = trouble
		}
	default:
		for _, c := range Conditions(o) {
			if c.Status == metav1.ConditionTrue && (c.Type == "Failed" || c.Type == "ReplicaFailure") {
				cause.Condition, cause.Reason, cause.Message = c.Type, c.Reason, c.Message
			}
		}
	}
	return cause
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(config.Printable(text)), " ")
}
