package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

// Cluster is shared by all passes of one controller.
type Cluster struct {
	Options
	kinds   kinds
	watcher Watcher

	mu       sync.Mutex
	uid      string // of the cluster
	watches  map[schema.GroupVersionKind]*watch
	owners   map[types.UID]reconcile.Request     // of every object that is reconciled
	uids     map[reconcile.Request]types.UID     // the other way around
	readers  map[Key]sets.Set[reconcile.Request] // who is woken by a change
	looked   map[reconcile.Request]sets.Set[Key] // the other way around
	writes   map[Key]write                       // that a watch has not shown yet
	contents map[Key]content                     // of Secrets and ConfigMaps
}

// New Cluster, in which nothing is watched yet.
func New(options Options) *Cluster {
	return &Cluster{
		Options:  options,
		kinds:    kinds{discovery: options.Discovery, retry: options.DiscoveryRetry, known: map[schema.GroupVersionKind]kindInfo{}},
		watches:  map[schema.GroupVersionKind]*watch{},
		owners:   map[types.UID]reconcile.Request{},
		uids:     map[reconcile.Request]types.UID{},
		readers:  map[Key]sets.Set[reconcile.Request]{},
		looked:   map[reconcile.Request]sets.Set[Key]{},
		writes:   map[Key]write{},
		contents: map[Key]content{},
	}
}

// Kind of an object, from itself or from the scheme. It panics for a type that
// the scheme lacks, which the first pass of a new operator shows.
func (c *Cluster) Kind(obj client.Object) schema.GroupVersionKind {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind
	}
	kind, err := apiutil.GVKForObject(obj, c.Scheme)
	if err != nil {
		panic(fmt.Sprintf("%T is not in the scheme: %v", obj, err)) //nolint:forbidigo // see above
	}
	return kind
}

// Served returns nil for a kind that the API server serves, and a NotServed for
// a kind that it does not serve.
func (c *Cluster) Served(kind schema.GroupVersionKind) error {
	_, err := c.kinds.of(kind)
	return err
}

// Namespaced says whether objects of the kind have a namespace. A kind that
// cannot be discovered counts as namespaced, as most are.
func (c *Cluster) Namespaced(kind schema.GroupVersionKind) bool {
	info, err := c.kinds.of(kind)
	return err != nil || info.namespaced
}

// UID identifies the cluster: it is that of the namespace kube-system, which
// every cluster has and nobody recreates. It is read once.
func (c *Cluster) UID(ctx context.Context) (string, error) {
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

// Freshest returns the object as its watch shows it, or, while the watch is
// behind the controller's own last write, as the API server answered that write
// or has it now; nil if it is absent. Secrets and ConfigMaps come as metadata.
func (c *Cluster) Freshest(ctx context.Context, key Key) (client.Object, error) {
	last, wrote := c.lastWrite(key) // before the read: a write that is forgotten meanwhile is older than what is read
	cached, err := c.read(ctx, c.Cached, key)
	if err != nil || !wrote {
		return cached, err
	}
	if !last.isAhead(cached) {
		c.forgetWrite(key, last)
		return cached, nil
	}
	if last.answer != nil && (cached != nil || last.created) && time.Since(last.at) < answerFor {
		return last.answer, nil
	}
	fresh, err := c.Live(ctx, key)
	if err == nil && fresh == nil {
		c.forgetWrite(key, last)
	}
	return fresh, err
}

// Live returns the object as the API server has it, nil if it is absent.
func (c *Cluster) Live(ctx context.Context, key Key) (client.Object, error) {
	return c.read(ctx, c.API, key)
}

func (c *Cluster) read(ctx context.Context, from client.Reader, key Key) (client.Object, error) {
	obj, err := c.newObject(key.Kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	switch err := from.Get(ctx, key.NamespacedName, obj); {
	case errors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer, not an error
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(key.Kind)
	return obj, nil
}

// list reads from the cache.
func (c *Cluster) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]client.Object, error) {
	list, err := c.newList(kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	if err := c.Cached.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	var all []client.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an object", item)
		}
		obj.GetObjectKind().SetGroupVersionKind(kind)
		all = append(all, obj)
		return nil
	})
	return all, err
}

// Decode turns the API server's answer into an object like those that are read.
func (c *Cluster) Decode(kind schema.GroupVersionKind, answer map[string]any) (client.Object, error) {
	obj, err := c.newObject(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer, obj); err != nil {
		return nil, fmt.Errorf("decoding the answer: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

func (c *Cluster) newObject(kind schema.GroupVersionKind) (client.Object, error) {
	if IsDataKind(kind) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return obj, nil
	}
	typed, err := c.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj, ok := typed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", kind.Kind)
	}
	return obj, nil
}

func (c *Cluster) newList(kind schema.GroupVersionKind) (client.ObjectList, error) {
	ofList := kind.GroupVersion().WithKind(kind.Kind + "List")
	if IsDataKind(kind) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(ofList)
		return list, nil
	}
	typed, err := c.Scheme.New(ofList)
	if err != nil {
		return nil, err
	}
	list, ok := typed.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", ofList.Kind)
	}
	return list, nil
}
