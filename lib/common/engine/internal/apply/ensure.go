package apply

import (
	"context"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Ensure makes the child in the cluster equal to the wanted child. It returns an Outcome, and
// may return the child as well, while the child is not complete.
func (c *Children) Ensure(ctx context.Context, stage Stage, want stampedChild) (Result, error) {
	switch want.Mode {
	case Absent:
		return Result{}, c.ensureAbsent(ctx, want, stage.CompletedBefore)
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
		current, err = c.create(ctx, want)
	} else {
		current, err = c.update(ctx, want, current)
	}
	if err != nil {
		return Result{}, err
	}
	result := c.resultOf(want, current)
	if observe.IsDataKind(want.key.Kind) {
		result.Data = dataOf(want)
	}
	if err := c.contested(want); err != nil {
		return result, err
	}
	return result, c.explained(ctx, want.key, current, want.Explain, Incomplete(current))
}

func (c *Children) resultOf(want stampedChild, current client.Object) Result {
	title := TitleOf(want.key.Kind.Kind, c.Owner, &unstructured.Unstructured{Object: want.body})
	return Result{Title: title, Key: want.key, Object: current}
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
	return c.resultOf(want, current), nil
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
