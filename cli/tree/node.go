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
	Own       bool                   `json:"-"` // of a kind of Asterism
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

// unshown are kinds that only explain their owner.
var unshown = []string{"Pod", "ReplicaSet"}

// Node returns an object with its children, without pods and ReplicaSets.
func (f *Forest) Node(o *unstructured.Unstructured) Node { return f.node(o, nil) }

func (f *Forest) node(o *unstructured.Unstructured, above []*unstructured.Unstructured) Node {
	state := StateOf(o)
	state.Message = masker.Text(state.Message)
	n := Node{
		Own:  IsOwn(o),
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
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
	above = append(slices.Clip(above), o)
	for _, child := range f.children[o.GetUID()] {
		if !slices.Contains(unshown, child.GetKind()) && !slices.Contains(above, child) {
			n.Children = append(n.Children, f.node(child, above))
		}
	}
	return n
}
