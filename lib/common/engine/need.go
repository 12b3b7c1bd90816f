package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// Need is an input that a stage waits for. It is declared once: the gate, the watch and
// the hash of a stage's inputs are derived from it.
type Need struct {
	// evaluate returns the value of the input, or the reason why the need is not met. The value
	// MUST encode as JSON, because its hash decides whether Do is called again. evaluate MUST
	// read through p.view, which registers the watch before it reads: otherwise a change
	// between both would wake nobody. What cannot be watched MUST be read again after a time. A read
	// that fails MUST be an error, and never an empty value: a stage would delete its children for it.
	evaluate func(context.Context, *pass) (any, error)
}

// foundObjects are the objects that a need has found. Their hash covers everything except
// metadata and status.
type foundObjects []client.Object

// countedObjects are foundObjects of which Counting has selected the inputs of the hash.
type countedObjects struct {
	foundObjects
	inputs []any
}

// objectsIn returns the objects that a need has found.
func objectsIn(seen any) foundObjects {
	if counted, ok := seen.(countedObjects); ok {
		return counted.foundObjects
	}
	objects, _ := seen.(foundObjects)
	return objects
}

// absence is the error for an object that does not exist, as opposed to an object that
// exists and is wrong. Optional ignores this error.
type absence struct{ error }

func (a absence) Unwrap() error { return a.error }

// Secret is met when the object's namespace has the Secret, with non-empty values for the
// keys.
func Secret(name string, keys ...string) Need {
	return data(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, keys)
}

// SecretWithAny is met when the object's namespace has the Secret, with non-empty values for the
// keys of one of the alternatives.
func SecretWithAny(name string, alternatives ...[]string) Need {
	var needs []Need
	for _, keys := range alternatives {
		needs = append(needs, Secret(name, keys...))
	}
	return AnyOf(needs...)
}

// SecretOf is met when an object exists, and the Secret that it names, for example that with which a
// service runs. nameIn returns the name of the Secret.
func SecretOf(object client.Object, nameIn func(client.Object) string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		_, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		return Secret(nameIn(current)).evaluate(ctx, p)
	}}
}

// ConfigMap is met when the object's namespace has the ConfigMap, with non-empty values
// for the keys.
func ConfigMap(name string, keys ...string) Need {
	return data(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, keys)
}

func data(object client.Object, keys []string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		if err := p.judgeHeld(); err != nil {
			return nil, err
		}
		data, err := p.view.Data(ctx, key, current)
		if err != nil {
			return nil, err
		}
		if data == nil {
			return nil, absence{Wait("%s does not exist", key)}
		}
		p.held[key] = observe.SizeOf(data)
		if err := p.judgeHeld(); err != nil {
			return nil, err
		}
		p.mask(key, data)
		p.noteExpiry(key, current)
		for _, name := range keys {
			if len(data[name]) == 0 {
				return nil, Wait("%s lacks key %s: add the key", key, name)
			}
		}
		p.in.data[key] = data
		return data, nil
	}}
}

// Existing is met when the object exists. Its metadata names it; the namespace defaults to
// the namespace of the object that is reconciled.
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

// Condition is met when the condition of another object of an Asterism kind is True for
// the newest generation of this object.
func Condition(object Object, condition string) Need { return TrueFor(object, condition, 0) }

// TrueFor is met when the condition has been True for the duration; see Condition. Its
// input is only the name of the condition: a change of the object does not run Do again.
func TrueFor(object Object, condition string, duration time.Duration) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, current, err := p.existing(ctx, object)
		if err != nil {
			return nil, err
		}
		p.in.objects[key] = current
		judged, ok := current.(Object)
		if !ok {
			return nil, fmt.Errorf("%s is not of a kind with Asterism's conditions", key)
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

// Time is met from a time on.
func Time(from time.Time) Need {
	return Need{func(context.Context, *pass) (any, error) {
		if left := time.Until(from); left > 0 {
			return nil, waitFor(left, "it is not yet %s", from.UTC().Format(time.RFC3339))
		}
		return from.UTC(), nil
	}}
}

// trueSince returns the time since which a condition has been True, or an error that
// explains why it is not. Available of an older generation counts: users are served,
// independent of the newest spec.
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
		return time.Time{}, Wait("%s: condition %s is of generation %d, not yet of generation %d", key, condition, known.ObservedGeneration, object.GetGeneration())
	}
	return known.LastTransitionTime.Time, nil
}

// Children finds every child of the object, of all kinds in Owns, all names and all
// stages: for a stage that removes children of an earlier spec. It is met unless a read
// fails.
func Children() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		all, err := p.readChildren(ctx)
		if err != nil {
			return nil, err
		}
		clear(p.in.children)
		for _, child := range all {
			p.in.children[observe.KeyOf(p.view.KindOf(child), child)] = child
		}
		p.in.knowsChildren = true
		return nil, nil
	}}
}

// Free is met when the object does not exist, or is a child: for a stage that prepares
// the creation of the object by another stage.
func Free(object client.Object) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, object)
		if err != nil {
			return nil, err
		}
		current, err := p.view.Get(ctx, key)
		if err != nil || current == nil || p.children.IsChild(current) {
			return nil, err
		}
		if current.GetDeletionTimestamp() != nil {
			return nil, Wait("%s %s and is being deleted", key, apply.DescribeOwner(current))
		}
		return nil, apply.ForeignOutcome(key, current)
	}}
}

// Done is met when an earlier stage of the same walk is done.
func Done(condition string) Need {
	return Need{func(_ context.Context, p *pass) (any, error) {
		if !p.done[condition] {
			return nil, Wait("stage %s is not done", condition)
		}
		return condition, nil
	}}
}

// Served is met when the API server serves the kind, for example Route. An object whose pass
// has not found the kind is woken when it is served.
func Served(kind schema.GroupVersionKind) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		err := p.view.Served(ctx, kind)
		p.in.served[kind] = err == nil
		if observe.IsNotServed(err) {
			p.view.AwaitServed(kind)
			return nil, absence{err}
		}
		return err == nil, err
	}}
}

// Cluster reads the identity of the cluster, see Inputs.Cluster: the UID of the namespace
// kube-system, which is never recreated. The UID is read once.
func Cluster() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		uid, err := p.view.ClusterUID(ctx)
		p.in.cluster = uid
		return uid, err
	}}
}

// namespaceEvery is the time until a namespace that a need refuses is read again.
const namespaceEvery = 5 * time.Second

// OwnNamespace is met when check returns nil for the metadata of the object's namespace, which
// every pass reads from the API server: a RoleBinding gives the right to get the own namespace, and
// none to watch it.
func OwnNamespace(check func(*metav1.PartialObjectMetadata) error) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		namespace, err := p.view.Namespace(ctx, p.request.Namespace)
		switch {
		case errors.IsNotFound(err):
			err = Wait("Namespace %s does not exist", p.request.Namespace)
		case err != nil:
			err = fmt.Errorf("reading Namespace %s: %w", p.request.Namespace, err)
		default:
			err = check(namespace)
		}
		if err == nil {
			return nil, nil
		}
		refused := *outcomeOf(err)
		if !refused.Retry {
			refused.After = namespaceEvery
		}
		return nil, &refused
	}}
}

// AnyOf is met when one of the needs is met. It does not look at the needs after that
// need. Mark the needs inside AnyOf as Optional; marking AnyOf itself does nothing. The reason of
// an unmet AnyOf is that of a need that is retried, or the one that all of its needs have, or else
// Waiting.
func AnyOf(needs ...Need) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		unmet := &outcome{Stalled: len(needs) > 0}
		var messages []string
		for _, need := range needs {
			seen, err := need.evaluate(ctx, p)
			if err == nil {
				return seen, nil
			}
			failure := outcomeOf(err)
			if !slices.Contains(messages, failure.Message) {
				messages = append(messages, failure.Message)
			}
			unmet.Stalled = unmet.Stalled && failure.Stalled
			if unmet.Reason == "" {
				unmet.Reason = failure.Reason
			} else if unmet.Reason != failure.Reason && !unmet.Retry {
				unmet.Reason = ReasonWaiting
			}
			if failure.Retry { // with back-off: no event reports the end of the failure
				unmet.Reason, unmet.Retry, unmet.Cause = failure.Reason, true, err
			}
			if failure.After > 0 && (unmet.After == 0 || failure.After < unmet.After) {
				unmet.After = failure.After
			}
		}
		unmet.Message = strings.Join(messages, "; ")
		if len(needs) == 0 {
			unmet.Reason, unmet.Message = ReasonWaiting, "no object is named"
		}
		return nil, unmet
	}}
}

// AllOf is met when all of the needs are met.
func AllOf(needs ...Need) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) { return p.gather(ctx, needs) }}
}

// As returns a need that the stage does not wait for: Inputs.Met tells by the name
// whether the need is met, and Inputs.Unmet why not. An error that is retried still fails the
// stage.
func (n Need) As(name string) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		_, err := n.evaluate(ctx, p)
		p.in.met[name] = err == nil
		if err != nil {
			unmet := outcomeOf(err)
			if unmet.Retry {
				return nil, err
			}
			p.in.unmet[name] = unmet.Message
			p.wakeAfter(unmet.After)
		}
		return []any{name, err == nil}, nil
	}}
}

// Where is met when check returns nil for every object that the need has found, or when
// the need has found no object. Only Existing and Labelled find objects and call check.
func (n Need) Where(check func(client.Object) error) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.evaluate(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, obj := range objectsIn(seen) {
			if err := check(obj); err != nil {
				return nil, err
			}
		}
		return seen, nil
	}}
}

// Counting selects the input from each object that the need has found, by default
// everything except metadata and status; an object with the input nil does not count.
// Only a change of an input runs Do again. Counting is for Existing and Labelled: any
// other need would lose its input.
func (n Need) Counting(inputOf func(client.Object) any) Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.evaluate(ctx, p)
		counted := countedObjects{foundObjects: objectsIn(seen)}
		for _, obj := range counted.foundObjects {
			if input := inputOf(obj); input != nil {
				counted.inputs = append(counted.inputs, input)
			}
		}
		return counted, err
	}}
}

// Optional returns a need that is also met when the object is absent. A kind that is not
// served is absent only for Served; other needs wait for the kind.
func (n Need) Optional() Need {
	return Need{func(ctx context.Context, p *pass) (any, error) {
		seen, err := n.evaluate(ctx, p)
		if _, absent := err.(absence); absent { //nolint:errorlint // an absence is never wrapped
			return nil, nil
		}
		return seen, err
	}}
}

// gather looks at every need. It returns a hash of the inputs, and an error for the first
// need that is not met.
func (p *pass) gather(ctx context.Context, needs []Need) (string, error) {
	var all []any
	var missing error
	for _, need := range needs {
		seen, err := need.evaluate(ctx, p)
		if err != nil && missing == nil {
			missing = err // the loop continues, so that a change of any need starts a pass
		}
		switch found := seen.(type) {
		case foundObjects:
			seen = content(found)
		case countedObjects:
			seen = found.inputs
		}
		all = append(all, seen)
	}
	return p.in.Hash(all), missing
}

// content returns the fields of the objects, except metadata and status.
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

// existing reads the object that a need names, and returns an absence if it does not
// exist.
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

// maxHeld bounds the data of Secrets and ConfigMaps that a pass holds, in bytes: many passes run at
// once, and whoever edits a namespace can refer to many Secrets of 1 MiB in one object.
const maxHeld = 4 << 20

// judgeHeld returns a Wait while the pass holds more than maxHeld: it then reads no further data.
func (p *pass) judgeHeld() error {
	var total int
	var largest observe.Key
	for key, size := range p.held {
		if total += size; size > p.held[largest] || size == p.held[largest] && key.Name < largest.Name {
			largest = key
		}
	}
	if total <= maxHeld {
		return nil
	}
	return Wait("the Secrets and ConfigMaps to which this resource refers have more than %d MiB together, more than the operator accepts: make them smaller, first of all %s", maxHeld>>20, largest)
}

// mask hides the data of a Secret in messages and logs.
func (p *pass) mask(key observe.Key, data map[string][]byte) {
	if key.Kind == observe.SecretKind {
		p.in.masks.Add(key.Name, data)
	}
}

// noteExpiry notes for the metrics when the certificates of a Secret or ConfigMap expire, unless an
// operator has written it: it then has copies of certificates.
func (p *pass) noteExpiry(key observe.Key, current client.Object) {
	expiry := p.view.Expiry(key)
	if _, written := current.GetLabels()[observe.LabelOwnerUID]; !written && !expiry.IsZero() {
		p.expiries[strings.ToLower(key.Kind.Kind)+"/"+key.Name] = expiry
	}
}
