package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery lists the kinds of a group and version, for example "apps/v1"; its error is
// NotFound for a group and version that are not served. client-go's DiscoveryClient
// implements it.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// NotServed is the error for a kind that the API server does not serve.
type NotServed struct { //nolint:errname // reads observe.NotServed
	Kind schema.GroupVersionKind
	// Again is the time after which discovery is called again.
	Again time.Duration
}

func (e *NotServed) Error() string {
	return fmt.Sprintf("the API server does not serve the kind %s (%s)", e.Kind.Kind, e.Kind.GroupVersion())
}

// IsNotServed tells whether err reports a kind that is not served, and therefore has no
// objects, as opposed to a failure of discovery.
func IsNotServed(err error) bool {
	var unserved *NotServed
	return errors.As(err, &unserved)
}

// failureFor is the time for which a failure of discovery is remembered, so that not every
// pass calls an aggregated API server that hangs.
const failureFor = time.Second

// kinds remembers the answers of discovery.
type kinds struct {
	discovery      Discovery
	retry, timeout time.Duration

	mu     sync.Mutex
	groups map[schema.GroupVersion]*group
}

// group is the last answer of discovery for one group and version, with its own lock.
type group struct {
	mu         sync.Mutex
	namespaced map[string]bool // of every kind that is served
	err        error           // of the last call, nil for an answer
	at         time.Time
}

// lookup tells whether the kind is namespaced, or returns a NotServed. It calls discovery
// unless the answer is known. The answer that a kind is served is valid until askAgain; the
// answer that a kind is not served is valid for the time retry.
func (k *kinds) lookup(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	g := k.group(kind.GroupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	if namespaced, served := g.namespaced[kind.Kind]; served {
		return namespaced, nil
	}
	k.refresh(ctx, kind.GroupVersion(), g)
	namespaced, served := g.namespaced[kind.Kind]
	switch {
	case g.err != nil:
		return false, fmt.Errorf("discovering %s: %w", kind.Kind, g.err)
	case !served:
		return false, &NotServed{Kind: kind, Again: k.retry}
	}
	return namespaced, nil
}

// mayBeGone tells whether the definition of a kind can be deleted, and discovery was not
// called for the time retry.
func (k *kinds) mayBeGone(kind schema.GroupVersionKind) bool {
	if !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return false // a kind of Kubernetes itself
	}
	g := k.group(kind.GroupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.at) >= k.retry
}

// askAgain calls discovery for a kind without objects. If the call fails, the last answer
// stays valid.
func (k *kinds) askAgain(ctx context.Context, kind schema.GroupVersionKind) error {
	g := k.group(kind.GroupVersion())
	g.mu.Lock()
	k.refresh(ctx, kind.GroupVersion(), g)
	g.err = nil
	g.mu.Unlock()
	_, err := k.lookup(ctx, kind)
	return err
}

func (k *kinds) group(gv schema.GroupVersion) *group {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.groups[gv] == nil {
		k.groups[gv] = &group{}
	}
	return k.groups[gv]
}

// refresh calls discovery, unless the last answer is recent.
func (k *kinds) refresh(ctx context.Context, gv schema.GroupVersion, g *group) {
	limit := k.retry
	if g.err != nil {
		limit = min(limit, failureFor)
	}
	if time.Since(g.at) < limit {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	resources, err := k.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	g.at, g.err = time.Now(), err
	if apierrors.IsNotFound(err) {
		resources, g.err = &metav1.APIResourceList{}, nil
	}
	if g.err != nil {
		return
	}
	g.namespaced = map[string]bool{}
	for _, resource := range resources.APIResources {
		g.namespaced[resource.Kind] = resource.Namespaced
	}
}
