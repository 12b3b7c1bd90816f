package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List is a Need that finds objects of one kind, and is also met when no object exists. It
// looks in the namespace of the object that is reconciled, or in the whole cluster if that
// object, or the kind, has no namespace. Two Lists with the same arguments are the same List.
type List[O client.Object] struct {
	Need
	labels     string // as a selector
	sampled    bool
	everywhere bool
}

// listKey names a List of any type.
type listKey struct {
	kind                schema.GroupVersionKind
	labels              string
	sampled, everywhere bool
}

// Labelled finds the objects with the labels. A change of any object of the kind that the
// operator caches, in this namespace, starts a pass.
func Labelled[O client.Object](with map[string]string) List[O] {
	l := List[O]{labels: labels.Set(with).String()}
	l.evaluate = func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, newOf[O]())
		if err != nil {
			return nil, err
		}
		all, err := p.view.List(ctx, key.Kind, key.Namespace, with)
		return p.listed(l.key(key.Kind), all), err
	}
	return l
}

// Sampled finds all objects of the kind. They are read in every pass, and at least once in the
// period. They start no pass and are no inputs: a change of an object does not run Do again.
// Sampled is for kinds with many objects, which share memory with the cache: Build and Report
// must not change them.
func Sampled[O client.Object](period time.Duration) List[O] { return sampled[O](period, false) }

// SampledEverywhere is Sampled in all namespaces that the operator watches. With the period 0,
// it starts no pass.
func SampledEverywhere[O client.Object](period time.Duration) List[O] {
	return sampled[O](period, true)
}

func sampled[O client.Object](period time.Duration, everywhere bool) List[O] {
	l := List[O]{sampled: true, everywhere: everywhere}
	l.evaluate = func(ctx context.Context, p *pass) (any, error) {
		key, err := p.children.KeyOf(ctx, newOf[O]())
		if err != nil {
			return nil, err
		}
		if everywhere {
			key.Namespace = ""
		}
		p.wakeAfter(period)
		all, err := p.view.Sample(ctx, key.Kind, key.Namespace)
		p.listed(l.key(key.Kind), all)
		return nil, err
	}
	return l
}

// In returns the objects that the List has found in this pass, sorted by namespace and name;
// none if no stage so far has needed the List. The objects must not be changed.
func (l List[O]) In(in Inputs) []O {
	var all []O
	for _, obj := range in.lists[l.key(in.kind(newOf[O]()))] {
		all = append(all, obj.(O)) //nolint:forcetypeassert // the key has the kind
	}
	return all
}

func (l List[O]) key(kind schema.GroupVersionKind) listKey {
	return listKey{kind, l.labels, l.sampled, l.everywhere}
}

// listed sorts the objects and makes them inputs.
func (p *pass) listed(key listKey, all []client.Object) foundObjects {
	slices.SortFunc(all, byName)
	p.in.lists[key] = all
	return all
}

func byName[O client.Object](a, b O) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}
