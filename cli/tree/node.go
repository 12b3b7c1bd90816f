package tree

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Node is an object with its state, the cause of the state, and its children.
type Node struct {
	Counted   bool                   `json:"-"` // in the summary: of a kind of Asterism, or named by a person
	Kind      string                 `json:"kind"`
	Namespace string                 `json:"namespace,omitempty"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Short     string                 `json:"state"`
	Available metav1.ConditionStatus `json:"available,omitempty"`
	Reason    string                 `json:"reason,omitempty"`
	Message   string                 `json:"message,omitempty"`
	Rest      string                 `json:"-"` // of the message, without the names of the objects below
	Created   metav1.Time            `json:"created"`
	Cause     *Cause                 `json:"cause,omitempty"`
	Children  []Node                 `json:"children,omitempty"`
}

// Unavailable tells whether an object that is ready does not serve its purpose: Ready does not
// depend on Available.
func (n Node) Unavailable() bool {
	return n.Ready == metav1.ConditionTrue && n.Available == metav1.ConditionFalse
}

// unshown are kinds that only explain their owner.
var unshown = []string{"Pod", "ReplicaSet"}

// Node returns an object with its children, without pods and ReplicaSets.
func (f *Forest) Node(o *unstructured.Unstructured) Node { return f.node(o, nil) }

func (f *Forest) node(o *unstructured.Unstructured, above []*unstructured.Unstructured) Node {
	state := StateOf(o)
	state.Message = masker.Text(state.Message)
	n := Node{
		Counted: IsOwn(o),
		Kind:    o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		Ready: state.Ready, Short: state.Short, Reason: state.Reason, Message: state.Message,
		Available: Condition(o, commonv1.ConditionAvailable).Status,
		Created:   o.GetCreationTimestamp(),
	}
	if !IsOwn(o) {
		n.Available = "" // a Deployment has a condition of this name with another meaning
	}
	n.Rest = n.Message
	if path := told(f.Path(o)); len(path) > 1 {
		n.Cause = Explain(path[len(path)-1])
		for _, below := range path[1:] {
			n.Rest = strings.TrimPrefix(n.Rest, below.GetKind()+" "+below.GetName()+": ")
		}
	}
	if IsPaused(o) && slices.ContainsFunc(above, IsPaused) {
		n.Rest, n.Cause = "", nil // the object above says it
	}
	if n.Unavailable() {
		n.Cause = f.unavailable(o)
	}
	above = append(slices.Clip(above), o)
	for _, child := range f.children[o.GetUID()] {
		if !slices.Contains(unshown, child.GetKind()) && !slices.Contains(above, child) {
			n.Children = append(n.Children, f.node(child, above))
		}
	}
	return n
}
