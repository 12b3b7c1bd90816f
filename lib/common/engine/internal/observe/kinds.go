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

// kinds remembers the answers of discovery.
type kinds struct {
	discovery Discovery
	retry     time.Duration // how long an answer counts that is doubted

	mu    sync.Mutex
	known map[schema.GroupVersion]servedKinds
}

// servedKinds are those of one group and version: whether each has namespaces.
type servedKinds struct {
	namespaced map[string]bool
	at         time.Time
}

// namespaced asks discovery, unless the answer is known. That a kind is served
// counts until somebody doubts it; that it is not served, for a while.
func (k *kinds) namespaced(kind schema.GroupVersionKind) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	namespaced, served := k.known[kind.GroupVersion()].namespaced[kind.Kind]
	if !served {
		if err := k.askAgain(kind.GroupVersion()); err != nil {
			return false, fmt.Errorf("discovering %s: %w", kind.Kind, err)
		}
		namespaced, served = k.known[kind.GroupVersion()].namespaced[kind.Kind]
	}
	if !served {
		return false, &NotServed{Kind: kind, Again: k.retry}
	}
	return namespaced, nil
}

// doubt that a kind is served of which no object is left: its definition may have
// been deleted.
func (k *kinds) doubt(kind schema.GroupVersionKind) error {
	k.mu.Lock()
	err := k.askAgain(kind.GroupVersion())
	k.mu.Unlock()
	if err != nil {
		return nil //nolint:nilerr // the last answer counts
	}
	_, err = k.namespaced(kind)
	return err
}

// askAgain unless discovery was asked a moment ago.
func (k *kinds) askAgain(gv schema.GroupVersion) error {
	if known, ok := k.known[gv]; ok && time.Since(known.at) < k.retry {
		return nil
	}
	resources, err := k.discovery.ServerResourcesForGroupVersion(gv.String())
	if errors.IsNotFound(err) {
		resources, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return err
	}
	answer := servedKinds{namespaced: map[string]bool{}, at: time.Now()}
	for _, resource := range resources.APIResources {
		answer.namespaced[resource.Kind] = resource.Namespaced
	}
	k.known[gv] = answer
	return nil
}
