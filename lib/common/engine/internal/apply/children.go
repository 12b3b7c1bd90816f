package apply

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Settings has the settings for the children of all objects of one kind.
type Settings struct {
	// Name is the field owner of every child, and its label
	// app.kubernetes.io/name.
	Name   string
	Client client.Client
	// Owns are the kinds of all children.
	Owns []schema.GroupVersionKind
	Limits
	// JobEnded is called once for each Job that has ended, with the name of its stage.
	JobEnded func(stage string, succeeded bool, took time.Duration)
}

// Limits are the times and numbers of Settings that tests change.
type Limits struct {
	// JobRetryMin and JobRetryMax bound the time between the failure of a Job and its next
	// run. Within the bounds, it is the time since the first failure, so that it doubles with
	// each failure.
	JobRetryMin, JobRetryMax time.Duration
	// RestoresAtOnce is the number of restorations of a child without a pause, more than a person
	// causes. After these, the child is restored every RestoreEvery.
	RestoresAtOnce int
	RestoreEvery   time.Duration
}

// Children are the children of one object, in one pass over the object.
type Children struct {
	*Settings
	Memory *Memory
	View   *observe.View
	Owner  client.Object
	// OwnerKind is the kind of the owner.
	OwnerKind schema.GroupVersionKind
	// Proof is a check of a child in addition to the marks of its owner; nil: none.
	Proof func(client.Object) bool
	// Mask hides secrets in a text.
	Mask func(string) string

	known []client.Object // see All
}

// Stage has the data of a stage that the treatment of its children depends on.
type Stage struct {
	Name string
	// Last is the stage's condition at the beginning of the pass, nil for none: it has the
	// last failure of a Job that runs again.
	Last *metav1.Condition
	// CompletedBefore is true if the stage was complete for the same children and generation before.
	CompletedBefore bool
}

// Result is the result of Ensure for one child.
type Result struct {
	// Title is the child's TitleOf, as it is recorded for the stage.
	Title string
	Key   observe.Key
	// Object is the child in its present version; nil if it is not what is wanted.
	Object client.Object
	// Data of a Secret or ConfigMap.
	Data map[string][]byte
	// Run is the name that the builder gave to a Once Job, set when the Job is complete.
	// Message is the Job's termination message.
	Run, Message string
	// Awaited is a superseded Job that runs to its end; the zero Key for none.
	Awaited observe.Key
}

// All returns the children of every kind and stage, as the watches show them. They are
// read once in a pass.
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
			if c.IsChild(child) {
				all = append(all, child)
			}
		}
	}
	c.known = all
	return all, nil
}

// TitleOf returns the kind of a child, its namespace if the owner has no namespace, and
// its name: "StatefulSet/demo-scheduler". For all runs of a Job, the name is the name
// that the builder gave to the Job.
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
