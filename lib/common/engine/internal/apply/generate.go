package apply

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ensureGenerated creates the Secret once; afterwards it is only looked at.
func (c *Children) ensureGenerated(ctx context.Context, d desired) (Result, error) {
	current, err := c.View.Get(ctx, d.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		data := map[string]any{}
		for _, key := range d.Keys {
			data[key] = base64.StdEncoding.EncodeToString([]byte(rand.Text()))
		}
		given, _, _ := unstructured.NestedMap(d.body, "data")
		for key, value := range given {
			data[key] = value
		}
		d.body["data"] = data
		if current, err = c.create(ctx, d); err != nil {
			return Result{}, err
		}
	}
	if err := c.claimed(d.key, current); err != nil {
		return Result{}, err
	}
	// The values are used as they were stored, never from memory: a crash loses nothing.
	data, err := c.View.Data(ctx, d.key, current)
	if err != nil {
		return Result{}, err
	}
	for _, key := range d.Keys {
		if len(data[key]) == 0 {
			return Result{}, waiting("%s lacks key %s", d.key, key)
		}
	}
	return Result{Object: current, Data: data}, nil
}
