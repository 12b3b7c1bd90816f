package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Need is something that a stage waits for. It is declared once: gate, watch and
// the hash of a stage's inputs follow from it.
type Need struct {
	// look returns what is seen, which must encode as JSON and is hashed, or why
	// the need is not met.
	look func(context.Context, *pass) (any, error)
}

// foundObjects are objects that a need has seen. Their hash covers everything except
// metadata and status; Counting replaces it.
type foundObjects []client.Object

// absence is the error for a need that does not exist, as opposed to a need that
// exists and is wrong. Optional forgives it.
type absence struct{ error }

func (a absence) Unwrap() error { return a.error }

// Secret in the object's namespace, with non-empty values for the keys.
func Secret(name string, keys ...string) Need {
	return data(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, keys)
}

// ConfigMap in the object's namespace, with the keys.
func ConfigMap(name string, keys ...string) Need {
	return data(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, keys)
}

func data(object client.Object, keys []string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		data, err := p.view.Data(ctx, key, current)
		if err != nil {
			return nil, err
		}
		if data == nil {
			return nil, absence{Wait("%s does not exist", key)}
		}
		p.mask(key, data)
		for _, name := range keys {
			if len(data[name]) == 0 {
				return nil, Wait("%s lacks key %s", key, name)
			}
		}
		p.in.data[key] = data
		return data, nil
	}}
}

// Existing object, named by its metadata; the namespace defaults to that of the
// object that is reconciled.
func Existing(object client.Object) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		p.in.objects[key] = current
		return foundObjects{current}, nil
	}}
}

// Condition of another object of the family that must be True for its newest
// generation.
func Condition(object Object, condition string) Need { return TrueFor(object, condition, 0) }

// TrueFor is Condition, met when it has been True for a while. Its input is the name of
// the condition alone: a change of the object is no reason to run Do.
func TrueFor(object Object, condition string, duration time.Duration) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		p.in.objects[key] = current
		judged, ok := current.(Object)
		if !ok {
			return nil, fmt.Errorf("%s has no conditions that this engine knows", key)
		}
		since, err := trueSince(key, judged, condition)
		if err != nil {
			return nil, err
		}
		if left := duration - time.Since(since); duration > 0 && left > 0 {
			return nil, waitFor(left, "%s has not been %s for %s yet", key, condition, duration)
		}
		return condition, nil
	}}
}

// trueSince returns since when a condition has been True, or why it is not.
// Available speaks of users, who are served whatever the spec has asked for since.
func trueSince(key observe.Key, object Object, condition string) (time.Time, error) {
	known := meta.FindStatusCondition(object.Common().Conditions, condition)
	upToDate := condition == commonv1.ConditionAvailable || object.Common().ObservedGeneration == object.GetGeneration()
	switch {
	case object.GetDeletionTimestamp() != nil:
		return time.Time{}, Wait("%s is being deleted", key)
	case !upToDate:
		return time.Time{}, Wait("%s: its operator has not seen generation %d yet", key, object.GetGeneration())
	case known == nil:
		return time.Time{}, Wait("%s does not report %s yet", key, condition)
	case known.Status != metav1.ConditionTrue:
		return time.Time{}, Wait("%s: %s is %s: %s", key, condition, known.Reason, known.Message)
	case known.ObservedGeneration != object.GetGeneration() && condition != commonv1.ConditionAvailable:
		return time.Time{}, Wait("%s: %s speaks of generation %d, and generation %d is wanted", key, condition, known.ObservedGeneration, object.GetGeneration())
	}
	return known.LastTransitionTime.Time, nil
}

// Labelled objects of the example's kind; none is enough. They are those in the namespace of
// the object that is reconciled, or all if either has no namespace.
func Labelled(example client.Object, labels map[string]string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, example)
		if err != nil {
			return nil, err
		}
		all, err := p.view.List(ctx, key.Kind, key.Namespace, labels)
		return p.listed(key, all), err
	}}
}

// Sampled objects are those of Labelled without labels. They are looked at in every
// pass, and at least once in the period. They wake nobody and are no inputs: a change of
// one runs no Do again. Sampled is for objects of which there are many.
func Sampled(example client.Object, period time.Duration) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, example)
		if err != nil {
			return nil, err
		}
		p.wakeAfter(period)
		all, err := p.view.Sample(ctx, key.Kind, key.Namespace, nil)
		p.listed(key, all)
		return nil, err
	}}
}

// listed makes objects of one kind inputs.
func (p *pass) listed(example observe.Key, all []client.Object) foundObjects {
	slices.SortFunc(all, func(a, b client.Object) int { return strings.Compare(string(a.GetUID()), string(b.GetUID())) })
	for _, obj := range all {
		p.in.labelled[observe.KeyOf(example.Kind, obj)] = obj
	}
	return all
}

// Children is every object of the kinds in Owns that belongs to the object,
// whatever its name and whichever stage made it: for a stage that removes what
// an earlier spec has left. It is always met.
func Children() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		all, err := p.lookAtChildren(ctx)
		if err != nil {
			return nil, err
		}
		clear(p.in.children)
		for _, child := range all {
			p.in.children[observe.KeyOf(p.view.KindOf(child), child)] = child
		}
		p.in.facts.knowsChildren = true
		return nil, nil
	}}
}

// Free is met when nothing has the object's name but, maybe, a child: for a stage
// that prepares something for a name that another stage takes.
func Free(object client.Object) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, object)
		if err != nil {
			return nil, err
		}
		current, err := p.view.Get(ctx, key)
		if err != nil || current == nil || p.children.IsOurs(current) {
			return nil, err
		}
		if current.GetDeletionTimestamp() != nil {
			return nil, Wait("%s %s and is being deleted", key, apply.DescribeOwner(current))
		}
		return nil, apply.ForeignOutcome(key, current)
	}}
}

// Done says that an earlier stage of the same walk must be done.
func Done(condition string) Need {
	return Need{func(_ context.Context, p *pass) (any, error) {
		if !p.done[condition] {
			return nil, Wait("stage %s is not done", condition)
		}
		return condition, nil
	}}
}

// Served says that the API server must serve a kind, for example Route.
func Served(kind schema.GroupVersionKind) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		err := p.view.Served(ctx, kind)
		p.in.served[kind] = err == nil
		if observe.IsNotServed(err) {
			return nil, absence{err}
		}
		return err == nil, err
	}}
}

// Cluster is the identity of the cluster, see Inputs.Cluster: the UID of the
// namespace that every cluster has and nobody recreates. It is read once.
func Cluster() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		uid, err := p.view.ClusterUID(ctx)
		p.in.facts.cluster = uid
		return uid, err
	}}
}

// AnyOf is met when one of the needs is. It looks at no need behind that
// one. Optional has no effect on AnyOf, but on the needs in it.
func AnyOf(needs ...Need) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		unmet := &outcome{Reason: ReasonWaiting}
		var messages []string
		for _, need := range needs {
			seen, err := need.look(ctx, p)
			if err == nil {
				return seen, nil
			}
			failure := outcomeOf(err)
			if !slices.Contains(messages, failure.Message) {
				messages = append(messages, failure.Message)
			}
			if failure.Retry { // tried again with back-off, since no event tells when it is over
				unmet.Reason, unmet.Retry, unmet.Cause = failure.Reason, true, err
			}
			if failure.After > 0 && (unmet.After == 0 || failure.After < unmet.After) {
				unmet.After = failure.After
			}
		}
		unmet.Message = strings.Join(messages, "; ")
		if len(needs) == 0 {
			unmet.Message = "nothing that would do is named"
		}
		return nil, unmet
	}}
}

// AllOf is met when all of the needs are.
func AllOf(needs ...Need) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) { return p.gather(ctx, needs) }}
}

// As makes the need one that is not waited for: Inputs.Met says by the name
// whether the need is met. An error that is to be retried still fails the stage.
func (n Need) As(name string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		_, err := n.look(ctx, p)
		p.in.met[name] = err == nil
		if err != nil {
			unmet := outcomeOf(err)
			if unmet.Retry {
				return nil, err
			}
			p.wakeAfter(unmet.After)
		}
		return []any{name, err == nil}, nil
	}}
}

// Where is met when check returns nil for every object that the need has found; it
// is met for none. Existing and Labelled find objects; no other need calls check.
func (n Need) Where(check func(client.Object) error) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.look(ctx, p)
		if err != nil {
			return nil, err
		}
		objects, _ := seen.(foundObjects)
		for _, obj := range objects {
			if err := check(obj); err != nil {
				return nil, err
			}
		}
		return seen, nil
	}}
}

// Counting replaces what counts as input of the objects that the need has found, by
// default everything except metadata and status; nil counts nothing. Only a change
// of an input makes a Do run again. It is for Existing and Labelled: another need
// would be no input any more.
func (n Need) Counting(what func(client.Object) any) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.look(ctx, p)
		objects, _ := seen.(foundObjects)
		var counted []any
		for _, obj := range objects {
			if input := what(obj); input != nil {
				counted = append(counted, input)
			}
		}
		return counted, err
	}}
}

// Optional makes the need an input that may be absent. A kind that is not served is
// absent for Served alone; for other needs it is something to wait for.
func (n Need) Optional() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.look(ctx, p)
		if _, absent := err.(absence); absent { //nolint:errorlint // an absence is never wrapped
			return nil, nil
		}
		return seen, err
	}}
}

// gather looks at every need. It returns a hash of what it saw, and an error for the
// first need that is not met.
func (p *pass) gather(ctx context.Context, needs []Need) (string, error) {
	var all []any
	var missing error
	for _, need := range needs {
		seen, err := need.look(ctx, p)
		if err != nil && missing == nil {
			missing = err // and go on, so that a change of any need wakes the object
		}
		if objects, ok := seen.(foundObjects); ok {
			seen = content(objects)
		}
		all = append(all, seen)
	}
	return apply.Hash(all), missing
}

// content of objects: everything except metadata and status.
func content(objects foundObjects) []any {
	var all []any
	for _, obj := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return []any{err.Error()}
		}
		delete(fields, "metadata")
		delete(fields, "status")
		all = append(all, obj.GetUID(), fields)
	}
	return all
}

// existing is an object that a need names.
func (p *pass) existing(ctx context.Context, object client.Object) (observe.Key, client.Object, error) {
	key, err := p.children.KeyOf(ctx, object)
	if err != nil {
		return key, nil, err
	}
	current, err := p.view.Get(ctx, key)
	if err == nil && current == nil {
		err = absence{Wait("%s does not exist", key)}
	}
	return key, current, err
}

// mask hides the data of a Secret from messages and logs.
func (p *pass) mask(key observe.Key, data map[string][]byte) {
	if key.Kind == observe.SecretKind {
		p.in.masks.Add(data)
	}
}
