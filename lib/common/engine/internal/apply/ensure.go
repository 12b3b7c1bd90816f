package apply

import (
	"context"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/engine/internal/observe"
)

// StampedChildren are the children of one stage, in order.
type StampedChildren []stampedChild

// Stamp adds names, owners, labels and hashes to the children that a builder returned.
// Nothing is sent.
func (c *Children) Stamp(ctx context.Context, stage string, children []Child) (StampedChildren, error) {
	var all StampedChildren
	for _, child := range children {
		want, err := c.stamp(ctx, stage, child)
		if err != nil {
			return nil, err
		}
		all = append(all, want)
	}
	return all, nil
}

// Hashes identifies the children: another value means other children.
func (all StampedChildren) Hashes() []string {
	var hashes []string
	for _, want := range all {
		hashes = append(hashes, fmt.Sprint(int(want.Mode)), want.key.String(), want.hash)
	}
	return hashes
}

// WantedKeys returns the keys of the children that must exist: all except Absent children.
func (all StampedChildren) WantedKeys() []observe.Key {
	var keys []observe.Key
	for _, want := range all {
		if want.Mode != Absent {
			keys = append(keys, want.key)
		}
	}
	return keys
}

// Ensure makes every child in the cluster equal to the wanted child, in order. It
// continues after a child that is not complete, and returns the first such outcome. It
// stops at a conflict and returns it: later children may give rights to the foreign
// object. wasComplete is true if the stage was complete for the same children before.
func (c *Children) Ensure(ctx context.Context, stage Stage, all StampedChildren, wasComplete bool) (results []Result, incomplete error) {
	for _, want := range all {
		result, err := c.ensure(ctx, stage, want, wasComplete)
		if err != nil && OutcomeOf(err).IsConflict() {
			return results, err
		}
		if err != nil && incomplete == nil {
			incomplete = err
		}
		if result.Object != nil {
			result.Key, result.Title = want.key, TitleOf(want.key.Kind.Kind, c.Owner, &unstructured.Unstructured{Object: want.body})
			results = append(results, result)
		}
	}
	return results, incomplete
}

func (c *Children) ensure(ctx context.Context, stage Stage, want stampedChild, wasComplete bool) (Result, error) {
	switch want.Mode {
	case Absent:
		return Result{}, c.ensureAbsent(ctx, want, wasComplete)
	case Kept:
		return c.ensureKept(ctx, want)
	case Once:
		return c.ensureOnce(ctx, stage, want)
	case Generated:
		return c.ensureGenerated(ctx, want)
	}
	current, err := c.View.Get(ctx, want.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		current, err = c.createOrUpdate(ctx, want)
	} else {
		current, err = c.updateOrReplace(ctx, want, current)
	}
	if err != nil {
		return Result{}, err
	}
	result := Result{Object: current}
	if observe.IsDataKind(want.key.Kind) {
		result.Data = dataOf(want)
	}
	return result, c.explained(ctx, want.key, current, want.Explain, Incomplete(current))
}

// ensureKept reads the child and changes nothing.
func (c *Children) ensureKept(ctx context.Context, want stampedChild) (Result, error) {
	current, err := c.View.Get(ctx, want.key)
	if observe.IsNotServed(err) {
		return Result{}, nil
	}
	if err != nil || current == nil || !c.IsChild(current) {
		return Result{}, err
	}
	return Result{Object: current}, nil
}

// dataOf returns the data of a Secret or ConfigMap that was sent, without a read.
func dataOf(want stampedChild) map[string][]byte {
	data := map[string][]byte{}
	values, _, _ := unstructured.NestedMap(want.body, "data")
	for key, value := range values {
		text, _ := value.(string)
		data[key] = []byte(text)
		if decoded, err := base64.StdEncoding.DecodeString(text); want.key.Kind == observe.SecretKind && err == nil {
			data[key] = decoded
		}
	}
	return data
}
