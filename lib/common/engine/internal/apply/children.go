package apply

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Shared is what the children of all objects of one kind have in common.
type Shared struct {
	// Name is the field owner of every child, and its label
	// app.kubernetes.io/name.
	Name   string
	Client client.Client
	// Owns are the kinds of all children.
	Owns []schema.GroupVersionKind
	// JobRetryMin and JobRetryMax bound the time between the failure of a Job and its
	// next run, which is as long as the stage has not been ready: the time doubles.
	JobRetryMin, JobRetryMax time.Duration
	// Explanations of what is not complete.
	Explanations *Explanations
}

// Children are those of one object, in one pass over it.
type Children struct {
	*Shared
	View  *observe.View
	Owner client.Object
	// OwnerKind is the kind of the owner.
	OwnerKind schema.GroupVersionKind
	// Proof is what a child must meet besides the marks of its owner; nil for
	// nothing more.
	Proof func(client.Object) bool
	// Mask hides secrets in a text.
	Mask func(string) string

	known []client.Object // see All
}

// Stage is what the children of one stage need to know of it.
type Stage struct {
	Name string
	// Last is the stage's condition as the pass found it, nil for none: a Job that
	// has failed waits as long as the condition has been False.
	Last *metav1.Condition
}

// Result is what became of a child.
type Result struct {
	// Title is the child's TitleOf, as its stage records it.
	Title string
	// Key and Object are the child as it is now; a child without an Object has no
	// Result.
	Key    observe.Key
	Object client.Object
	// Data of a Secret or ConfigMap.
	Data map[string][]byte
	// Run is the name that its builder gave a Once Job which is complete, and
	// Message the Job's termination message.
	Run, Message string
}

// All returns the children that the watches show, of every kind and stage. They
// are read once in a pass.
func (c *Children) All(ctx context.Context) ([]client.Object, error) {
	if c.known != nil {
		return c.known, nil
	}
	all := []client.Object{}
	for _, kind := range c.Owns {
		found, err := c.View.Children(ctx, kind, c.Owner.GetUID())
		if observe.IsNotServed(err) {
			continue // a kind that is not served has no objects
		}
		if err != nil {
			return nil, err
		}
		for _, child := range found {
			if c.IsOurs(child) {
				all = append(all, child)
			}
		}
	}
	c.known = all
	return all, nil
}

// TitleOf a child is its kind, the namespace if the owner has none, and its name:
// "StatefulSet/demo-scheduler". All runs of a Job have the name that its builder
// gave the Job.
func TitleOf(kind string, owner, child metav1.Object) string {
	name := child.GetName()
	if run := child.GetLabels()[labelRunOf]; run != "" {
		name = run
	}
	if owner.GetNamespace() == "" && child.GetNamespace() != "" {
		name = child.GetNamespace() + "/" + name
	}
	return kind + "/" + name
}
