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

// Child is an object that a stage wants: a typed apply configuration, a typed object of an
// Asterism kind, or a wrapper of either. Wrappers nest.
type Child any

// Absent deletes the object if it is a child; the stage is not done until the child no
// longer exists.
func Absent(child Child) Child { return withMode(apply.Absent, child) }

// TornDown is Absent for a child whose own teardown needs the child's dependents: they are
// deleted after the teardown, and not before.
func TornDown(child Child) Child {
	c := unwrap(Absent(child))
	c.TearsDown = true
	return c
}

// LeftBy deletes a child of a deleted owner with the UID. The stage must have verified that
// the child belonged to this owner, because labels and annotations can be forged.
func LeftBy(owner types.UID, child Child) Child {
	c := unwrap(Absent(child))
	c.FormerOwner = owner
	return c
}

// Replaced is for immutable kinds: a child whose change the API server refuses is deleted, and
// recreated when it no longer exists.
func Replaced(child Child) Child { return withMode(apply.Replaced, child) }

// Kept neither applies nor deletes the child.
func Kept(child Child) Child { return withMode(apply.Kept, child) }

// Generated is an immutable Secret that is created once, with a random value for each key.
func Generated(secret *applycorev1.SecretApplyConfiguration, keys ...string) Child {
	return apply.Child{Object: secret, Mode: apply.Generated, SecretKeys: keys}
}

// Once runs exactly one Job for each content. The name of the Job ends with the hash of its
// content, and a Job with other content is deleted before. If the Job must run again only
// when certain values change, pass these values as depends; other changes then do not run
// the Job. The Job's termination message is an input of this stage's Report and of later
// stages. It is stored as it is: it must not have secrets, and the kubelet cuts it after 4096
// bytes. The Job must have backoffLimit 0 and no TTL.
func Once(job *applybatchv1.JobApplyConfiguration, depends ...string) Child {
	return apply.Child{Object: job, Mode: apply.Once, Depends: depends}
}

// Uninterrupted is for a Job that leaves something unfinished if it is killed: while its pod runs,
// a Once Job with other content waits for its end. A pod that does not start is not waited for.
func Uninterrupted(child Child) Child {
	c := unwrap(child)
	c.Uninterrupted = true
	return c
}

// Unowned omits the owner reference, so that a foreground deletion of the owner does not
// delete the child before the teardown does. The teardown must delete the child.
func Unowned(child Child) Child {
	c := unwrap(child)
	c.Unowned = true
	return c
}

// Lingering delays the deletion of a child that its builder no longer lists until every stage is
// ready, also those that are Apart: then no consumer refers to the child.
func Lingering(child Child) Child {
	c := unwrap(child)
	c.Lingers = true
	return c
}

// Explained adds the result of explain to the message of a child that is not complete, or
// whose deletion takes long. explain is called every few seconds, with a reader that
// bypasses the cache. The messages of workloads and Jobs also have the problems of their
// pods, if explain returns "". explain runs within the pass, before Report, and may set fields of
// the status of the object that is reconciled: what it has seen is not an input.
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

// Selector returns the labels that select the pods of one instance of a service. They
// never change, because the selector of a workload is immutable.
func Selector(service, instance string) map[string]string { return apply.Selector(service, instance) }

// OwnedBy returns labels that every child of the object has, and no other object.
func OwnedBy(owner client.Object) map[string]string {
	return map[string]string{observe.LabelOwnerUID: string(owner.GetUID())}
}

// OwnerUID returns the UID of the owner according to the object, without a proof.
func OwnerUID(obj client.Object) types.UID { return observe.OwnerUID(obj) }

// Hash returns the hash of values that encode as JSON, as 16 hex digits: for names that depend on
// content. The values must not have secrets, see Inputs.Hash.
func Hash(values ...any) string { return apply.Hash(values) }
