package apply

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ensureGenerated creates the Secret once, and only reads it afterwards.
func (c *Children) ensureGenerated(ctx context.Context, want stampedChild) (Result, error) {
	current, err := c.View.Get(ctx, want.key)
	if err != nil {
		return Result{}, err
	}
	if current == nil {
		data := map[string]any{}
		for _, key := range want.SecretKeys {
			data[key] = base64.StdEncoding.EncodeToString([]byte(rand.Text()))
		}
		given, _, _ := unstructured.NestedMap(want.body, "data")
		for key, value := range given {
			data[key] = value
		}
		want.body["data"] = data
		if current, err = c.create(ctx, want); err != nil {
			return Result{}, err
		}
	}
	if err := c.requireOurs(want.key, current); err != nil {
		return Result{}, err
	}
	// The stored values are used, never values in memory, so that a crash loses nothing.
	data, err := c.View.Data(ctx, want.key, current)
	if err != nil {
		return Result{}, err
	}
	for _, key := range want.SecretKeys {
		if len(data[key]) == 0 {
			return Result{}, waiting("%s lacks key %s", want.key, key)
		}
	}
	result := c.resultOf(want, current)
	result.Data = data
	return result, nil
}
