package observe

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery lists the kinds of a group and version, for example "apps/v1"; its
// error is NotFound for a group and version that is not served. client-go's
// DiscoveryClient is one.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
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

// kinds remembers what discovery has answered.
type kinds struct {
	discovery Discovery
	retry     time.Duration // how long an answer counts that may become wrong

	mu    sync.Mutex
	known map[schema.GroupVersionKind]kindInfo
}

type kindInfo struct {
	served, namespaced bool
	at                 time.Time
}

// of asks discovery, unless the answer is known: that a kind is served counts
// until somebody doubts it, that it is not served for a while.
func (k *kinds) of(kind schema.GroupVersionKind) (kindInfo, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, known := k.known[kind]
	if !known || !info.served && time.Since(info.at) >= k.retry {
		var err error
		if info, err = k.ask(kind); err != nil {
			return info, err
		}
		k.known[kind] = info
	}
	if !info.served {
		return info, &NotServed{Kind: kind, Again: k.retry}
	}
	return info, nil
}

func (k *kinds) ask(kind schema.GroupVersionKind) (kindInfo, error) {
	info := kindInfo{at: time.Now()}
	resources, err := k.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if errors.IsNotFound(err) {
		return info, nil
	}
	if err != nil {
		return info, fmt.Errorf("discovering %s: %w", kind.Kind, err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == kind.Kind {
			info.served, info.namespaced = true, resource.Namespaced
		}
	}
	return info, nil
}

// isGone asks again about a kind of which no object is left, at most once in a
// while: its definition may have been deleted.
func (k *kinds) isGone(kind schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	info := k.known[kind]
	if time.Since(info.at) < k.retry {
		return false
	}
	now, err := k.ask(kind)
	if err != nil {
		return false
	}
	k.known[kind] = now
	return !now.served
}
