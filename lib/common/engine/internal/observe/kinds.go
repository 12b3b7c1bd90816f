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

// Discovery lists the kinds of a group and version, for example "apps/v1"; its
// error is NotFound for a group and version that is not served. client-go's
// DiscoveryClient is one.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// NotServed is the error for a kind that the API server does not serve.
type NotServed struct { //nolint:errname // reads observe.NotServed
	Kind schema.GroupVersionKind
	// Again is after how long discovery is asked again.
	Again time.Duration
}

func (e *NotServed) Error() string {
	return fmt.Sprintf("the API server does not serve the kind %s (%s)", e.Kind.Kind, e.Kind.GroupVersion())
}

// IsNotServed distinguishes a kind that is not served, and so has no objects, from
// a kind that could not be discovered.
func IsNotServed(err error) bool {
	var unserved *NotServed
	return errors.As(err, &unserved)
}

// failureFor is how long a failure to discover a group counts: one hanging
// aggregated API server is not asked by every pass.
const failureFor = time.Second

// kinds remembers the answers of discovery.
type kinds struct {
	discovery      Discovery
	retry, timeout time.Duration

	mu     sync.Mutex
	groups map[schema.GroupVersion]*group
}

// group is the last answer about one group and version. Whoever asks holds the
// lock of that group alone.
type group struct {
	mu         sync.Mutex
	namespaced map[string]bool // of every kind that is served
	err        error           // in the place of an answer
	at         time.Time
}

// lookup says whether the kind is namespaced, or returns a NotServed. It asks
// discovery, unless the answer is known. That a kind is served
// counts until its absence is doubted; that a kind is not served counts for retry.
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

// mayBeGone says whether the definition of a kind can be deleted, and discovery
// was not asked for a while.
func (k *kinds) mayBeGone(kind schema.GroupVersionKind) bool {
	if !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io") {
		return false // a kind of Kubernetes itself
	}
	g := k.group(kind.GroupVersion())
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.at) >= k.retry
}

// askAgain about a kind of which no object is left. A failure leaves the last
// answer.
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

// refresh the answer, unless it is a new one.
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
