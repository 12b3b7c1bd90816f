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
	// Cache is watched; nil watches nothing.
	Cache cache.Cache
	// Cached reads what the watches have shown, API what the API server has.
	Cached, API client.Reader
	// ReadTimeout bounds every read: a read of a kind whose watch is forbidden
	// would otherwise block its worker for ever.
	ReadTimeout time.Duration
	// DiscoveryRetry is how long a kind that is not served counts as absent.
	DiscoveryRetry time.Duration
}

// Watcher starts a watch whose events reach the controller's queue; a
// controller-runtime controller is one.
type Watcher interface {
	Watch(source source.TypedSource[reconcile.Request]) error
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Cluster is what one controller knows of the cluster. All its passes share it.
type Cluster struct {
	Options
	kinds    kinds
	queue    queue           // of the controller
	lifetime context.Context //nolint:containedctx // of the controller; watches end with it

	mu       sync.Mutex
	uid      string // of the cluster
	watches  map[schema.GroupVersionKind]*watch
	owners   map[types.UID]reconcile.Request     // of every object that is reconciled
	uids     map[reconcile.Request]types.UID     // the other way around
	readers  map[Key]sets.Set[reconcile.Request] // who is woken by a change
	lookedAt map[reconcile.Request]sets.Set[Key] // readers the other way around
	writes   map[Key]write                       // that a watch has not shown yet
	contents map[Key]content                     // of Secrets and ConfigMaps
}

// New Cluster, in which nothing is watched yet.
func New(options Options) *Cluster {
	return &Cluster{
		Options:  options,
		kinds:    kinds{discovery: options.Discovery, retry: options.DiscoveryRetry, timeout: options.ReadTimeout, groups: map[schema.GroupVersion]*group{}},
		watches:  map[schema.GroupVersionKind]*watch{},
		owners:   map[types.UID]reconcile.Request{},
		uids:     map[reconcile.Request]types.UID{},
		readers:  map[Key]sets.Set[reconcile.Request]{},
		lookedAt: map[reconcile.Request]sets.Set[Key]{},
		writes:   map[Key]write{},
		contents: map[Key]content{},
	}
}

// KindOf an object, from itself or from the scheme. It panics for a type that
// the scheme lacks, which the first pass of a new operator shows.
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
	_, err := c.kinds.lookup(ctx, kind)
	return err
}

// Namespaced says whether objects of the kind have a namespace. A kind that is not
// served counts as namespaced, as most are.
func (c *Cluster) Namespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	namespaced, err := c.kinds.lookup(ctx, kind)
	if IsNotServed(err) {
		return true, nil
	}
	return namespaced, err
}

// ClusterUID identifies the cluster: it is the UID of the namespace kube-system, which
// every cluster has and nobody recreates. It is read once.
func (c *Cluster) ClusterUID(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.uid
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	if err := c.API.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("identifying the cluster by the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = string(system.UID)
	return c.uid, nil
}
