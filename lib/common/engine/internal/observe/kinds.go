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
	groups map[schema.GroupVersion]group
}

// group is the last answer of discovery for one group and version.
type group struct {
	namespaced map[string]bool // of every kind that is served; nil: no answer yet
	err        error           // of the last call, nil for an answer
	at         time.Time       // of the last call
	calling    chan struct{}   // closed when the present call ends; nil: no call
}

// lookup tells whether the kind is namespaced, or returns a NotServed. An answer is valid for the
// time retry, except that a kind that was served still is, unless this is doubted.
func (k *kinds) lookup(ctx context.Context, kind schema.GroupVersionKind, doubted bool) (bool, error) {
	gv := kind.GroupVersion()
	g := k.last(gv)
	namespaced, served := g.namespaced[kind.Kind]
	if !served || doubted {
		g = k.refresh(ctx, gv)
		namespaced, served = g.namespaced[kind.Kind]
	}
	switch {
	case served: // also if the last call has failed
		return namespaced, nil
	case g.err != nil:
		return false, fmt.Errorf("discovering %s: %w", kind.Kind, g.err)
	}
	return false, &NotServed{Kind: kind, Again: k.retry}
}

// mayBeGone tells whether the definition of a kind can be deleted, and discovery was not
// called for the time retry.
func (k *kinds) mayBeGone(kind schema.GroupVersionKind) bool {
	return !scheme.Scheme.Recognizes(kind) && time.Since(k.last(kind.GroupVersion()).at) >= k.retry
}

// last returns the last answer for a group and version.
func (k *kinds) last(gv schema.GroupVersion) group {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.groups[gv]
}

// refresh calls discovery, unless the last answer is recent. While another pass calls, the last
// answer or failure is returned; if there is none, the pass waits.
func (k *kinds) refresh(ctx context.Context, gv schema.GroupVersion) group {
	g, calls := k.begin(gv)
	switch {
	case calls:
		k.call(ctx, gv, g)
	case g.calling != nil && g.namespaced == nil && g.err == nil:
		select {
		case <-g.calling:
		case <-ctx.Done():
		}
	}
	return k.last(gv)
}

// begin returns the last answer, and whether the caller must call discovery.
func (k *kinds) begin(gv schema.GroupVersion) (group, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, limit := k.groups[gv], k.retry
	if g.err != nil {
		limit = min(limit, failureFor)
	}
	if g.calling != nil || time.Since(g.at) < limit {
		return g, false
	}
	g.calling = make(chan struct{})
	k.groups[gv] = g
	return g, true
}

func (k *kinds) call(ctx context.Context, gv schema.GroupVersion, g group) {
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	resources, err := k.discovery.ServerResourcesForGroupVersionWithContext(limited, gv.String())
	if apierrors.IsNotFound(err) {
		resources, err = &metav1.APIResourceList{}, nil
	}
	answer := group{namespaced: g.namespaced, err: err, at: time.Now()} // after a failure, the answer before stays
	if err == nil {
		answer.namespaced = map[string]bool{}
		for _, resource := range resources.APIResources {
			answer.namespaced[resource.Kind] = resource.Namespaced
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(g.calling)
	k.groups[gv] = answer
}
