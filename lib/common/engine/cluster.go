package engine

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterID returns the UID of the namespace kube-system, read once.
func (o *observer) clusterID(ctx context.Context) (string, error) {
	o.mu.Lock()
	known := o.cluster
	o.mu.Unlock()
	if known != "" {
		return known, nil
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(namespaceGVK)
	ctx, cancel := context.WithTimeout(ctx, o.readTimeout)
	defer cancel()
	if err := o.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("identifying the cluster by the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cluster = string(system.UID)
	return o.cluster, nil
}
