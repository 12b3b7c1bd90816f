package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
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

// kinds remembers the answers of discovery. Its lock is never held during a call: an aggregated
// API server that hangs delays only passes that have no answer at all.
type kinds struct {
	discovery      Discovery
	retry, timeout time.Duration

	mu     sync.Mutex
	groups map[schema.GroupVersion]*group
}

// group is the last answer of discovery for one group and version.
type group struct {
	namespaced map[string]bool // of every kind that is served; nil: no answer yet
	err        error           // of the last call, nil for an answer
	at         time.Time       // of the last call
	calling    chan struct{}   // closed when the present call ends; nil: no call
}

// lookup tells whether the kind is namespaced, or returns a NotServed. It calls discovery
// unless the answer is known. The answer that a kind is served is valid until askAgain; the
// answer that a kind is not served is valid for the time retry.
func (k *kinds) lookup(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	g := k.last(kind.GroupVersion())
	if namespaced, served := g.namespaced[kind.Kind]; served {
		return namespaced, nil
	}
	g = k.refresh(ctx, kind.GroupVersion())
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
	return !scheme.Scheme.Recognizes(kind) && time.Since(k.last(kind.GroupVersion()).at) >= k.retry
}

// askAgain calls discovery for a kind without objects. If the call fails, the last answer
// stays valid.
func (k *kinds) askAgain(ctx context.Context, kind schema.GroupVersionKind) error {
	g := k.refresh(ctx, kind.GroupVersion())
	if _, served := g.namespaced[kind.Kind]; served || g.err != nil {
		return nil //nolint:nilerr // see above
	}
	return &NotServed{Kind: kind, Again: k.retry}
}

// last returns the last answer for a group and version.
func (k *kinds) last(gv schema.GroupVersion) group {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *k.group(gv)
}

func (k *kinds) group(gv schema.GroupVersion) *group {
	if k.groups[gv] == nil {
		k.groups[gv] = &group{}
	}
	return k.groups[gv]
}

// refresh calls discovery, unless the last answer is recent. While another pass calls, the last
// answer is returned; if there is none, the pass waits.
func (k *kinds) refresh(ctx context.Context, gv schema.GroupVersion) group {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.group(gv)
	limit := k.retry
	if g.err != nil {
		limit = min(limit, failureFor)
	}
	switch {
	case time.Since(g.at) < limit, g.calling != nil && g.namespaced != nil:
		return *g
	case g.calling != nil:
		k.wait(ctx, g.calling)
	default:
		k.call(ctx, gv, g)
	}
	return *g
}

// wait waits for the call of another pass.
func (k *kinds) wait(ctx context.Context, call <-chan struct{}) {
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-call:
	case <-ctx.Done():
	}
}

func (k *kinds) call(ctx context.Context, gv schema.GroupVersion, g *group) {
	g.calling = make(chan struct{})
	k.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	resources, err := k.discovery.ServerResourcesForGroupVersionWithContext(limited, gv.String())
	if apierrors.IsNotFound(err) {
		resources, err = &metav1.APIResourceList{}, nil
	}
	k.mu.Lock()
	close(g.calling)
	g.calling, g.at, g.err = nil, time.Now(), err
	if err != nil {
		return
	}
	g.namespaced = map[string]bool{} // a new map: others read the old one
	for _, resource := range resources.APIResources {
		g.namespaced[resource.Kind] = resource.Namespaced
	}
}
