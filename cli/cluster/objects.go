package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/internal/apigroup"
)

// UnreadError reports something that could not be read, with the reason.
type UnreadError struct {
	What string
	Own  bool // of a kind of Asterism
	Err  error
}

// Error returns one line.
func (u UnreadError) Error() string { return fmt.Sprintf("%s cannot be read: %v", u.What, u.Err) }

// Objects lists the objects of the kinds in a namespace; all namespaces, if it is empty. A
// kind that the API server does not serve has no objects. A kind without the right to list
// is unread, and every other error ends the list.
func (c *Cluster) Objects(ctx context.Context, namespace string, kinds ...schema.GroupVersionKind) ([]*unstructured.Unstructured, []UnreadError, error) {
	var found []*unstructured.Unstructured
	var unread []UnreadError
	for _, kind := range kinds {
		objects, err := c.List(ctx, namespace, kind)
		switch {
		case apierrors.IsForbidden(err):
			unread = append(unread, UnreadError{What: What(kind, namespace), Own: apigroup.IsOwn(kind.Group), Err: err})
		case err != nil:
			return nil, nil, fmt.Errorf("%s cannot be read: %w", What(kind, namespace), err)
		}
		found = append(found, objects...)
	}
	return found, unread, nil
}

// What names the objects of a kind in a namespace.
func What(kind schema.GroupVersionKind, namespace string) string {
	if namespace == "" {
		return kind.Kind + " objects"
	}
	return fmt.Sprintf("%s objects in namespace %s", kind.Kind, namespace)
}

// List lists the objects of one kind, without their managed fields.
func (c *Cluster) List(ctx context.Context, namespace string, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := listOf(kind)
	err := c.WithWatch.List(ctx, list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
		objects[i].SetManagedFields(nil)
	}
	return objects, nil
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// retryWatch is the pause before a watch that could not start is started again.
const retryWatch = 5 * time.Second

// Changes returns a channel that receives a value after changes of objects of the kinds,
// until the context ends. Several changes may be one value. The start of a watch is a value as
// well, because changes before the start are not known.
func (c *Cluster) Changes(ctx context.Context, namespace string, kinds ...schema.GroupVersionKind) <-chan struct{} {
	changed := make(chan struct{}, 1)
	for _, kind := range kinds {
		go c.follow(ctx, namespace, kind, changed)
	}
	return changed
}

// follow watches one kind. The API server ends each watch after some minutes.
func (c *Cluster) follow(ctx context.Context, namespace string, kind schema.GroupVersionKind, changed chan<- struct{}) {
	for ctx.Err() == nil {
		stream, err := c.Watch(ctx, listOf(kind), client.InNamespace(namespace))
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(retryWatch):
			}
			continue
		}
		signal(changed)
		for range stream.ResultChan() {
			signal(changed)
		}
	}
}

// signal sends a value. A value that is not received yet stands for this change as well.
func signal(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
