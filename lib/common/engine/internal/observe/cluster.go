package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options of a Cluster.
type Options struct {
	// Name of the controller: the name of its index in the cache.
	Name      string
	Scheme    *runtime.Scheme
	Discovery Discovery
	// Cache provides the watches; nil: nothing is watched.
	Cache cache.Cache
	// Cached reads from the cache, API from the API server.
	Cached, API client.Reader
	// WatchFailure returns the last failure of the watch of a kind, see Failures.
	WatchFailure func(schema.GroupVersionKind) error
	// ReadTimeout bounds every read: a read of a kind whose watch is forbidden would
	// otherwise block its worker forever.
	ReadTimeout time.Duration
	// DiscoveryRetry is the time after which discovery is called again for a kind that is
	// not served.
	DiscoveryRetry time.Duration
}

// Watcher starts a watch that adds requests to the controller's queue, as a controller of
// controller-runtime does.
type Watcher interface {
	Watch(source source.TypedSource[reconcile.Request]) error
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Cluster is the knowledge of one controller about the cluster. All its passes share it.
type Cluster struct {
	Options
	kinds      kinds
	reconciled schema.GroupVersionKind
	queue      queue           // of the controller
	lifetime   context.Context //nolint:containedctx // of the controller; watches end with it

	mu       sync.Mutex
	uid      string // of the cluster
	watches  map[schema.GroupVersionKind]*watch
	owners   map[types.UID]reconcile.Request     // of every object that is reconciled
	uids     map[reconcile.Request]types.UID     // owners, inverted
	readers  map[Key]sets.Set[reconcile.Request] // requests that a change adds to the queue
	lookedAt map[reconcile.Request]sets.Set[Key] // readers, inverted
	writes   map[Key]write                       // that a watch has not shown yet
	contents map[Key]content                     // of Secrets and ConfigMaps
	kept     int                                 // bytes in contents
	awaited  sets.Set[schema.GroupVersionKind]   // that are not served, and that a timer asks for
}

// New returns a Cluster without watches.
func New(options Options) *Cluster {
	return &Cluster{
		Options:  options,
		kinds:    kinds{discovery: options.Discovery, retry: options.DiscoveryRetry, timeout: options.ReadTimeout, groups: map[schema.GroupVersion]group{}},
		watches:  map[schema.GroupVersionKind]*watch{},
		owners:   map[types.UID]reconcile.Request{},
		uids:     map[reconcile.Request]types.UID{},
		readers:  map[Key]sets.Set[reconcile.Request]{},
		lookedAt: map[reconcile.Request]sets.Set[Key]{},
		writes:   map[Key]write{},
		contents: map[Key]content{},
		awaited:  sets.New[schema.GroupVersionKind](),
	}
}

// KindOf returns the kind of an object, from the object or from the scheme. It panics for a
// type that is not in the scheme: the first pass of a new operator finds this mistake.
func (c *Cluster) KindOf(obj client.Object) schema.GroupVersionKind {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind
	}
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		panic(fmt.Sprintf("%T is not in the scheme: %v", obj, err)) //nolint:forbidigo // see above
	}
	return kind
}

// Served returns nil for a kind that the API server serves, a NotServed for a kind
// that it does not serve, and another error if that could not be discovered.
func (c *Cluster) Served(ctx context.Context, kind schema.GroupVersionKind) error {
	_, err := c.kinds.lookup(ctx, kind, false)
	return err
}

// Namespaced tells whether objects of the kind have a namespace. A kind that is not served
// counts as namespaced, because most kinds are.
func (c *Cluster) Namespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	namespaced, err := c.kinds.lookup(ctx, kind, false)
	if IsNotServed(err) {
		return true, nil
	}
	return namespaced, err
}

// ClusterUID returns the identity of the cluster: the UID of the namespace kube-system,
// which is never recreated. The UID is read once.
func (c *Cluster) ClusterUID(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.uid
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	system, err := c.Namespace(ctx, metav1.NamespaceSystem)
	if err != nil {
		return "", fmt.Errorf("identifying the cluster by the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = string(system.UID)
	return c.uid, nil
}

// Namespace reads the metadata of a namespace from the API server.
func (c *Cluster) Namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	err := c.API.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace, err
}
