package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Child is something that a stage wants: a typed apply configuration, a typed
// object of the family's own kinds, or a wrapper of one of them. Wrappers nest.
type Child any

// Absent deletes the child, if it is ours; the stage is not done until the child
// was observed gone.
func Absent(child Child) Child { return withMode(apply.Absent, child) }

// LeftBy deletes a child that an owner with the UID, which is gone, has left behind. The
// stage has proved that the child was that owner's: labels and annotations can be forged.
func LeftBy(owner types.UID, child Child) Child {
	c := unwrap(Absent(child))
	c.FormerOwner = owner
	return c
}

// Replaced is for what cannot be changed: a changed child is deleted, seen
// gone, and created anew.
func Replaced(child Child) Child { return withMode(apply.Replaced, child) }

// Kept leaves the child as it is, if it exists: it is neither applied nor deleted.
func Kept(child Child) Child { return withMode(apply.Kept, child) }

// Generated is a Secret that is created once, with a random value for each key,
// and never changed by the engine again. It is immutable.
func Generated(secret *applycorev1.SecretApplyConfiguration, keys ...string) Child {
	return apply.Child{Object: secret, Mode: apply.Generated, SecretKeys: keys}
}

// Once runs exactly one Job per content: the Job is named after the hash of
// what its builder said, and a Job with other content is deleted and seen gone
// first. Where only some of the content decides whether the work must be done
// again, that is passed as depends, and the rest may change freely. The Job's
// termination message is an input of this stage's Report and of later stages.
// The Job must have backoffLimit 0 and no TTL.
func Once(job *applybatchv1.JobApplyConfiguration, depends ...string) Child {
	return apply.Child{Object: job, Mode: apply.Once, Depends: depends}
}

// Unowned leaves out the owner reference, so that foreground deletion of the
// owner does not remove the child before the teardown is done with it. The
// teardown must remove it.
func Unowned(child Child) Child {
	c := unwrap(child)
	c.Unowned = true
	return c
}

// Lingering keeps the child, after its builder stops listing it, until the whole
// object is ready. No consumer names the child then.
func Lingering(child Child) Child {
	c := unwrap(child)
	c.Lingers = true
	return c
}

// Explained adds to the message of a child that is not complete, or does not go
// away, what explain finds. It is asked every few seconds, with a reader of the
// API server itself. Workloads and Jobs need none: they say what their pods say.
func Explained(child Child, explain func(ctx context.Context, live client.Reader, obj client.Object) (string, error)) Child {
	c := unwrap(child)
	c.Explain = explain
	return c
}

func withMode(mode apply.Mode, child Child) Child {
	c := unwrap(child)
	c.Mode = mode
	return c
}

func unwrap(child Child) apply.Child {
	if c, ok := child.(apply.Child); ok {
		return c
	}
	return apply.Child{Object: child}
}

// Selector returns the labels that find the pods of one instance of a service.
// They never change, because selectors cannot.
func Selector(service, instance string) map[string]string { return apply.Selector(service, instance) }

// OwnedBy are labels that every child of the object has, and nothing else.
func OwnedBy(owner client.Object) map[string]string {
	return map[string]string{observe.LabelOwnerUID: string(owner.GetUID())}
}

// OwnerUID is what an object says of its owner, whose child the object may be.
func OwnerUID(obj client.Object) types.UID { return observe.OwnerUID(obj) }

// Hash is the hash of anything that JSON can say, 16 hex digits: for what a
// builder must name or annotate by its content.
func Hash(values ...any) string { return apply.Hash(values) }
