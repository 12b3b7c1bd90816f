package apply

import (
	"context"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/lib/common/engine/internal/observe"
)

// Stamped are the children of one stage, in order.
type Stamped []desired

// Stamp what a stage's builder returned. Nothing is sent.
func (c *Children) Stamp(ctx context.Context, stage string, children []Child) (Stamped, error) {
	var all Stamped
	for _, child := range children {
		d, err := c.desire(ctx, stage, child)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Hashes of the children: another value means other children.
func (all Stamped) Hashes() []string {
	var hashes []string
	for _, d := range all {
		hashes = append(hashes, fmt.Sprint(int(d.Mode)), d.key.String(), d.hash)
	}
	return hashes
}

// Keys of the children that are to exist.
func (all Stamped) Keys() []observe.Key {
	var keys []observe.Key
	for _, d := range all {
		if d.Mode != Absent {
			keys = append(keys, d.key)
		}
	}
	return keys
}

// Ensure brings every child to what its builder wants, in order, also after one that
// is not complete, and returns the first reason why the stage is not. It stops at a
// conflict, because the children behind it may give rights to the foreign object.
// settled says that the stage was complete for these children before.
func (c *Children) Ensure(ctx context.Context, stage Stage, all Stamped, settled bool) (results []Result, incomplete error) {
	for _, d := range all {
		result, err := c.ensure(ctx, stage, d, settled)
		if err != nil && incomplete == nil {
			incomplete = err
		}
		if result.Object != nil {
			result.Key, result.Name = d.key, TitleOf(d.key.Kind.Kind, c.Owner, &unstructured.Unstructured{Object: d.body})
			results = append(results, result)
		}
		if err != nil && OutcomeOf(err).IsConflict() {
			break
		}
	}
	return results, incomplete
}

func (c *Children) ensure(ctx context.Context, stage Stage, d desired, settled bool) (Result, error) {
	switch d.Mode {
	case Absent:
		return Result{}, c.ensureAbsent(ctx, d, settled)
	case Kept:
		return c.ensureKept(ctx, d)
	case Once:
		return c.ensureOnce(ctx, stage, d)
	case Generated:
		return c.ensureGenerated(ctx, d)
	}
	current, err := c.View.Get(ctx, d.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		current, err = c.create(ctx, d)
	} else {
		current, err = c.update(ctx, d, current)
	}
	if err != nil {
		return Result{}, err
	}
	result := Result{Object: current}
	if observe.IsDataKind(d.key.Kind) {
		result.Data = dataOf(d)
	}
	return result, c.explained(ctx, d.key, current, d.Explain, Complete(current))
}

// ensureKept only looks at the child, if there is one.
func (c *Children) ensureKept(ctx context.Context, d desired) (Result, error) {
	current, err := c.View.Get(ctx, d.key)
	if observe.IsNotServed(err) {
		return Result{}, nil // a kind that is not served has no objects
	}
	if err != nil || current == nil || !c.IsOurs(current) {
		return Result{}, err
	}
	return Result{Object: current}, nil
}

// dataOf a Secret or ConfigMap, which need not be read back.
func dataOf(d desired) map[string][]byte {
	data := map[string][]byte{}
	values, _, _ := unstructured.NestedMap(d.body, "data")
	for key, value := range values {
		text, _ := value.(string)
		data[key] = []byte(text)
		if decoded, err := base64.StdEncoding.DecodeString(text); d.key.Kind == observe.SecretKind && err == nil {
			data[key] = decoded
		}
	}
	return data
}
