package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// stuck is the path from an object that is not ready down to the object that blocks it.
type stuck struct {
	path []*unstructured.Unstructured
}

// diagnose follows the blocking children down to an object that no child blocks.
func (f *objectTree) diagnose(root *unstructured.Unstructured) stuck {
	s := stuck{path: []*unstructured.Unstructured{root}}
	for next := f.blockingChild(root); next != nil; next = f.blockingChild(next) {
		s.path = append(s.path, next)
	}
	return s
}

// blockingChild returns the child that blocks an object of Asterism: the child named in
// its condition's message, or else, if the condition's reason is Progressing or empty, the
// first that is not ready. Of another object it returns the newest that is not ready.
func (f *objectTree) blockingChild(o *unstructured.Unstructured) *unstructured.Unstructured {
	var waiting []*unstructured.Unstructured
	for _, child := range f.children[o.GetUID()] {
		if !readiness(child).ready {
			waiting = append(waiting, child)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if !isAsterismKind(o) {
		return waiting[len(waiting)-1]
	}
	trouble := conditionShown(o)
	var named *unstructured.Unstructured
	for _, child := range waiting {
		if strings.Contains(trouble.message, child.GetName()) && (named == nil || len(child.GetName()) > len(named.GetName())) {
			named = child
		}
	}
	if named == nil && (trouble.reason == "Progressing" || trouble.reason == "") {
		named = waiting[0]
	}
	return named
}

// leaf is the object that blocks all others of the path.
func (s stuck) leaf() *unstructured.Unstructured { return s.path[len(s.path)-1] }

// stalled reports whether an object of the path has the condition Stalled.
func (s stuck) stalled() bool {
	return slices.ContainsFunc(s.path, func(o *unstructured.Unstructured) bool {
		return isAsterismKind(o) && condition(o, "Stalled").status == "True"
	})
}

// String returns the path, with an object and its state in each line.
func (s stuck) String() string {
	var lines []string
	for depth, o := range s.path {
		stem := ""
		if depth > 0 {
			stem = strings.Repeat("  ", depth-1) + "└─"
		}
		lines = append(lines, fmt.Sprintf("%s%s/%s  %s", stem, o.GetKind(), o.GetName(), stateText(o)))
	}
	return strings.Join(lines, "\n")
}

func stateText(o *unstructured.Unstructured) string {
	if shown := conditionShown(o); shown.kind != "" {
		return shown.String()
	}
	if o.GetKind() == kindPod {
		if trouble := podTrouble(o); trouble.reason != "" {
			return trouble.String()
		}
	}
	return readiness(o).message
}

// conditionShown returns the condition that explains an object: of Asterism's kinds the
// first stage that is not done or else Ready, of other kinds a reported failure.
func conditionShown(o *unstructured.Unstructured) conditionState {
	for _, c := range conditions(o) {
		switch {
		case isAsterismKind(o) && c.status == "False" && c.kind != "Ready" && c.kind != "Available" && c.kind != "Stalled":
			return c
		case c.status == "True" && (c.kind == "Failed" || c.kind == "ReplicaFailure"):
			return c
		case c.status == "False" && c.kind == "PodScheduled":
			return c
		}
	}
	if isAsterismKind(o) {
		return condition(o, "Ready")
	}
	return conditionState{}
}

// containerTrouble is the container because of which a pod is not ready, and the run that
// explains it.
type containerTrouble struct {
	container string
	previous  bool // the previous run explains it
	logged    bool // the run has a log
	reason    string
}

func (t containerTrouble) String() string {
	return fmt.Sprintf("container %s: %s", t.container, t.reason)
}

// podTrouble finds the first init container that is not done, else the first
// container that is not ready.
func podTrouble(o *unstructured.Unstructured) containerTrouble {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		return containerTrouble{reason: err.Error()}
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if ended := status.State.Terminated; !status.Ready && (ended == nil || ended.ExitCode != 0) {
			return troubleOf(status)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready {
			return troubleOf(status)
		}
	}
	return containerTrouble{}
}

func troubleOf(status corev1.ContainerStatus) containerTrouble {
	t := containerTrouble{container: status.Name, logged: true}
	last := status.LastTerminationState.Terminated
	switch {
	case status.State.Terminated != nil:
		t.reason = ended(status.State.Terminated)
	case status.State.Waiting != nil && last != nil:
		t.previous = true
		t.reason = fmt.Sprintf("%s after %d restarts; its last run %s", status.State.Waiting.Reason, status.RestartCount, ended(last))
	case status.State.Waiting != nil:
		t.logged = false
		t.reason = strings.TrimSuffix(status.State.Waiting.Reason+": "+status.State.Waiting.Message, ": ")
	case status.RestartCount > 0 && last != nil:
		t.reason = fmt.Sprintf("running, not ready, after %d restarts; its last run %s", status.RestartCount, ended(last))
	default:
		t.reason = "running, not ready"
	}
	return t
}

func ended(run *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", run.ExitCode)
	if detail := cmp.Or(strings.TrimSpace(run.Message), strings.TrimPrefix(run.Reason, "Error")); detail != "" {
		text += ": " + detail
	}
	return text
}

// responsible returns the operator of one of Asterism's kinds: the longest operator's name
// that begins the kind's, nova-api for NovaAPI and nova for NovaCell.
func responsible(kind string, operators []string) string {
	best := "meta"
	for _, operator := range operators {
		name := strings.ReplaceAll(operator, "-", "")
		if strings.HasPrefix(strings.ToLower(kind), name) && (best == "meta" || len(operator) > len(best)) {
			best = operator
		}
	}
	return best
}
