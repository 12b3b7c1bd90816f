package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Need names something that a stage waits for. It is declared once: gate, watch
// and the hash of a stage's inputs follow from it.
type Need struct {
	object    client.Object
	keys      []string
	condition string
	labels    map[string]string
	listed    bool
	stage     string
	served    schema.GroupVersionKind
	anyOf     []Need
	allOf     []Need
	duration  time.Duration
	counts    func(client.Object) any
	cluster   bool
	name      string
	optional  bool
	children  bool
	free      bool
	complete  bool
}

// Secret in the object's namespace, with non-empty values for the keys.
func Secret(name string, keys ...string) Need {
	return Need{object: &corev1.Secret{ObjectMeta: objectMeta(name)}, keys: keys}
}

// ConfigMap in the object's namespace, with the keys.
func ConfigMap(name string, keys ...string) Need {
	return Need{object: &corev1.ConfigMap{ObjectMeta: objectMeta(name)}, keys: keys}
}

// Existing object, named by its metadata; the namespace defaults to that of the
// object that is reconciled.
func Existing(object client.Object) Need { return Need{object: object} }

// Condition of another object of the family that must be True for its newest
// generation.
func Condition(object Object, condition string) Need {
	return Need{object: object, condition: condition}
}

// TrueFor is Condition, met when it has been True for a while.
func TrueFor(object Object, condition string, duration time.Duration) Need {
	return Need{object: object, condition: condition, duration: duration}
}

// Cluster is the identity of the cluster, see Inputs.Cluster.
func Cluster() Need { return Need{cluster: true} }

// Labelled objects of a kind; none is enough. They are those in the namespace of
// the object that is reconciled, or all if either has no namespace.
func Labelled(kind client.Object, labels map[string]string) Need {
	return Need{object: kind, labels: labels, listed: true, optional: true}
}

// Done says that an earlier stage of the same walk must be done.
func Done(condition string) Need { return Need{stage: condition} }

// Served says that the API server must serve a kind, for example Route.
func Served(gvk schema.GroupVersionKind) Need { return Need{served: gvk} }

// AnyOf is met when one of the needs is.
func AnyOf(needs ...Need) Need { return Need{anyOf: needs} }

// AllOf is met when all of the needs are.
func AllOf(needs ...Need) Need { return Need{allOf: needs} }

// As makes the need one that is not waited for: Inputs.Met tells by the name
// whether it is met.
func (n Need) As(name string) Need {
	n.name = name
	return n
}

// Counting says what of the object is an input, where that is not its spec; nil
// for nothing. Only a change of that makes a Do run again.
func (n Need) Counting(what func(client.Object) any) Need {
	n.counts = what
	return n
}

// Optional makes the need an input that may be absent.
func (n Need) Optional() Need {
	n.optional = true
	return n
}

// gather looks at everything that the needs name. It returns a hash of what it
// saw, and an error for the first need that is not met.
func (p *pass) gather(ctx context.Context, needs []Need) (string, error) {
	var seen []any
	var missing error
	for _, need := range needs {
		fingerprint, err := p.look(ctx, need)
		if need.name != "" {
			p.note(need.name, err)
			seen = append(seen, []any{need.name, err == nil})
			continue
		}
		if err != nil && !(need.optional && isAbsence(err)) {
			if missing == nil {
				missing = err
			}
			continue // go on: every need is to be watched
		}
		seen = append(seen, fingerprint)
	}
	return hash(seen), missing
}

// note records whether a need that is not waited for is met. What it would have
// waited for wakes us all the same.
func (p *pass) note(name string, err error) {
	p.in.met[name] = err == nil
	if err != nil {
		p.wakeAfter(outcomeOf(err).after)
	}
}

// absence is the error for a need that is not there, as opposed to one that is
// there and wrong.
type absence struct{ error }

func (a absence) Unwrap() error { return a.error }

func isAbsence(err error) bool {
	_, ok := err.(absence) //nolint:errorlint // absence is never wrapped between look and gather
	return ok
}

func (p *pass) look(ctx context.Context, need Need) (any, error) {
	switch {
	case need.stage != "":
		if !p.done[need.stage] {
			return nil, Wait("stage %s is not done", need.stage)
		}
		return need.stage, nil
	case need.served != (schema.GroupVersionKind{}):
		return p.lookServed(need.served)
	case need.cluster:
		return p.lookCluster(ctx)
	case need.children:
		return nil, p.lookChildren(ctx)
	case need.free:
		return nil, p.lookFree(ctx, need.object)
	case need.complete:
		return nil, p.lookComplete(ctx, need.object)
	case need.anyOf != nil:
		return p.lookAny(ctx, need.anyOf)
	case need.allOf != nil:
		return p.gather(ctx, need.allOf)
	case need.listed:
		return p.lookLabelled(ctx, need)
	}
	return p.lookObject(ctx, need)
}

func (p *pass) lookServed(gvk schema.GroupVersionKind) (any, error) {
	err := p.observer.serves(gvk)
	p.in.served[gvk] = err == nil
	if meta.IsNoMatchError(err) {
		return nil, absence{notServed(gvk, p.discoveryRetry)}
	}
	return err == nil, err
}

// lookCluster identifies the cluster by the UID of the namespace that every
// cluster has and nobody re-creates. It is read once.
func (p *pass) lookCluster(ctx context.Context) (any, error) {
	id, err := p.observer.clusterID(ctx)
	if err != nil {
		return nil, err
	}
	*p.in.cluster = id
	return id, nil
}

func (p *pass) lookAny(ctx context.Context, needs []Need) (any, error) {
	var failures []string
	var again time.Duration // until the first that only waits for time
	for _, need := range needs {
		seen, err := p.look(ctx, need)
		if err == nil {
			return seen, nil
		}
		if failure := err.Error(); !slices.Contains(failures, failure) {
			failures = append(failures, failure)
		}
		if after := outcomeOf(err).after; after > 0 && (again == 0 || after < again) {
			again = after
		}
	}
	if len(failures) == 0 {
		return nil, Wait("there is none")
	}
	return nil, WaitFor(again, "%s", strings.Join(failures, "; "))
}

func (p *pass) lookLabelled(ctx context.Context, need Need) (any, error) {
	gvk := p.kind(need.object)
	namespace := p.cr.GetNamespace()
	if !p.observer.namespaced(gvk) {
		namespace = ""
	}
	found, err := p.observer.list(ctx, p.request, gvk, namespace, need.labels)
	if err != nil {
		return nil, err
	}
	var seen []any
	p.in.lists[gvk.String()] = found
	for _, obj := range found {
		switch {
		case need.counts == nil:
			seen = append(seen, obj.GetUID())
		case need.counts(obj) != nil:
			seen = append(seen, need.counts(obj))
		}
	}
	return seen, nil
}

func (p *pass) lookObject(ctx context.Context, need Need) (any, error) {
	key := p.keyOf(need.object)
	current, err := p.observe(ctx, key)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, absence{Wait("%s does not exist", key)}
	}
	switch {
	case isDataKind(key.gvk):
		return p.lookData(ctx, key, current, need.keys)
	case need.condition != "":
		return need.condition, p.lookCondition(key, current, need)
	}
	p.in.objects[key] = current
	if need.counts != nil {
		return need.counts(current), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	delete(content, "metadata")
	delete(content, "status")
	return []any{current.GetUID(), content}, nil
}

func (p *pass) lookData(ctx context.Context, key objectKey, current client.Object, keys []string) (any, error) {
	data, err := p.observer.data(ctx, key, current)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, absence{Wait("%s does not exist", key)}
	}
	if key.gvk == secretGVK {
		p.in.remember(data)
	}
	for _, name := range keys {
		if len(data[name]) == 0 {
			return nil, Wait("%s lacks key %s", key, name)
		}
	}
	p.in.data[key] = data
	return data, nil
}

func (p *pass) lookCondition(key objectKey, current client.Object, need Need) error {
	p.in.objects[key] = current
	object, ok := current.(Object)
	if !ok {
		return fmt.Errorf("%s has no conditions that this engine knows", key)
	}
	status := object.Common()
	// Available speaks of users, who are served whatever the spec has asked for since.
	if need.condition != commonv1.ConditionAvailable && status.ObservedGeneration != object.GetGeneration() {
		return Wait("%s: its operator has not seen generation %d yet", key, object.GetGeneration())
	}
	found := meta.FindStatusCondition(status.Conditions, need.condition)
	switch {
	case found == nil:
		return Wait("%s does not report %s yet", key, need.condition)
	case found.Status != "True":
		return Wait("%s: %s is %s: %s", key, need.condition, found.Reason, found.Message)
	}
	if left := need.duration - time.Since(found.LastTransitionTime.Time); need.duration > 0 && left > 0 {
		return WaitFor(left, "%s has not been %s for %s yet", key, need.condition, need.duration)
	}
	return nil
}

// keyOf names the object that a Need or a Child means, in the namespace of the
// object that is reconciled unless its kind has none.
func (p *pass) keyOf(object client.Object) objectKey {
	gvk := p.kind(object)
	namespace := object.GetNamespace()
	if namespace == "" && p.observer.namespaced(gvk) {
		namespace = p.cr.GetNamespace()
	}
	return objectKey{gvk: gvk, NamespacedName: types.NamespacedName{Namespace: namespace, Name: object.GetName()}}
}

// notServed names the operator that brings a kind of the family; by convention
// it is the kind in kebab case: NovaAPI comes with nova-api.
func notServed(gvk schema.GroupVersionKind, again time.Duration) error {
	message := fmt.Sprintf("the API server does not serve the kind %s (%s)", gvk.Kind, gvk.GroupVersion())
	if strings.HasSuffix(gvk.Group, "asterism.dev") {
		message += fmt.Sprintf(": install the operator %s", kebab(gvk.Kind))
	}
	return &outcome{reason: ReasonWaiting, message: message, after: again}
}

func kebab(kind string) string {
	var out strings.Builder
	for i, r := range kind {
		upper := r >= 'A' && r <= 'Z'
		if upper && i > 0 && kind[i-1] >= 'a' && kind[i-1] <= 'z' {
			out.WriteByte('-')
		}
		if upper {
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}
