package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// boundedClient gives every write but that of the status a deadline, as writeStatus does: a
// webhook that hangs would otherwise occupy a worker.
type boundedClient struct {
	client.Client
	timeout time.Duration
}

func (c boundedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.Client.Apply(ctx, obj, opts...)
}

func (c boundedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.Client.Create(ctx, obj, opts...)
}

func (c boundedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c boundedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.Client.Delete(ctx, obj, opts...)
}
