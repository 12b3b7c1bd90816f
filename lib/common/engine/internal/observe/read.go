package observe

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Current returns the object as its watch shows it or, while the watch is behind the
// controller's own last write, as the API server has it. It returns nil if the object does
// not exist, and only the metadata of Secrets and ConfigMaps.
func (c *Cluster) Current(ctx context.Context, key Key) (client.Object, error) {
	last, wrote := c.lastWrite(key) // before the read: a write that is forgotten in between is older than the read object
	cached, err := c.read(ctx, c.Cached, key)
	if err != nil || !wrote {
		return cached, err
	}
	if !last.isAhead(cached) {
		c.forgetWrite(key, last)
		return cached, nil
	}
	fresh, err := c.Live(ctx, key)
	if err == nil && fresh == nil && cached == nil { // while the watch still shows a deleted object, the write is remembered
		c.forgetWrite(key, last)
	}
	return fresh, err
}

// Live reads the object from the API server; nil if it does not exist.
func (c *Cluster) Live(ctx context.Context, key Key) (client.Object, error) {
	return c.read(ctx, c.API, key)
}

func (c *Cluster) read(ctx context.Context, from client.Reader, key Key) (client.Object, error) {
	obj, err := c.newObject(key.Kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	switch err := from.Get(ctx, key.NamespacedName, obj); {
	case errors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer, not an error
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(key.Kind)
	return obj, nil
}

// list reads from the cache.
func (c *Cluster) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	list, err := c.newList(kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	if err := c.Cached.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	var all []client.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		obj := item.(client.Object)                         //nolint:forcetypeassert // the kind is that of an object
		if obj.GetObjectKind().GroupVersionKind() != kind { // the object may share memory with the cache
			obj.GetObjectKind().SetGroupVersionKind(kind)
		}
		all = append(all, obj)
		return nil
	})
	return all, err
}

// Decode converts an answer of the API server to an object of the type that reads return.
func (c *Cluster) Decode(kind schema.GroupVersionKind, answer map[string]any) (client.Object, error) {
	obj, err := c.newObject(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, obj); err != nil {
		return nil, fmt.Errorf("decoding the answer: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

func (c *Cluster) newObject(kind schema.GroupVersionKind) (client.Object, error) {
	if IsDataKind(kind) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return obj, nil
	}
	typed, err := c.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return typed.(client.Object), nil //nolint:forcetypeassert // the kind is that of an object
}

func (c *Cluster) newList(kind schema.GroupVersionKind) (client.ObjectList, error) {
	ofList := kind.GroupVersion().WithKind(kind.Kind + "List")
	if IsDataKind(kind) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(ofList)
		return list, nil
	}
	typed, err := c.Scheme.New(ofList)
	if err != nil {
		return nil, err
	}
	return typed.(client.ObjectList), nil //nolint:forcetypeassert // the kind is that of a list
}
