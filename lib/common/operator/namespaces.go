package operator

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// inUse is the domain of the finalizer that delays the deletion of a RoleBinding, and of
// the operator's rights, while the namespace has objects of the operator's kinds. The name
// in the finalizer is the operator's namespace, because a cluster may have several
// installations.
const inUse = "in-use.asterism.dev"

const (
	// syncTimeout is less than the time after which the kubelet restarts an operator that
	// does not answer its probe.
	syncTimeout = 30 * time.Second
	// changeDelay is the time between a change of the namespaces and the new manager, so
	// that several changes need one manager.
	changeDelay = time.Second
)

// handOver finds the namespaces that are handed over to an operator. Each of them has a
// RoleBinding with the name of the operator's ServiceAccount, which gives to this account
// the ClusterRole of the same name.
type handOver struct {
	account types.NamespacedName
	// bindings has every RoleBinding of that name. It runs until the process ends.
	bindings cache.Cache
}

// newHandOver starts the watch of the RoleBindings for the operator's ServiceAccount.
func newHandOver(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*handOver, error) {
	account := types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(podServiceAccount)}
	if account.Namespace == "" || account.Name == "" {
		return nil, fmt.Errorf("environment variable %s is not set, and %s or %s is empty: set %s to the namespaces to watch, separated by commas, or to the empty string to watch all",
			watchNamespace, podNamespace, podServiceAccount, watchNamespace)
	}
	bindings, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}: {Field: fields.OneTermEqualSelector("metadata.name", account.Name)},
	}})
	if err != nil {
		return nil, err
	}
	if _, err := bindings.GetInformer(ctx, &rbacv1.RoleBinding{}); err != nil {
		return nil, err
	}
	go func() { _ = bindings.Start(ctx) }() // fails only if it was started before
	wait, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !bindings.WaitForCacheSync(wait) && ctx.Err() == nil {
		return nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over, took more than %s: check that the operator has the rights to list and watch them", account.Name, syncTimeout)
	}
	return &handOver{account: account, bindings: bindings}, nil
}

// matches tells whether a RoleBinding hands its namespace over.
func (h *handOver) matches(binding *rbacv1.RoleBinding) bool {
	return binding.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: h.account.Name} &&
		slices.Contains(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.account.Namespace, Name: h.account.Name})
}

// namespaces returns the namespaces that are handed over now, and the other namespaces with
// a RoleBinding of this name.
func (h *handOver) namespaces(ctx context.Context) (handedOver, others sets.Set[string], err error) {
	var all rbacv1.RoleBindingList
	if err := h.bindings.List(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over: %w", h.account.Name, err)
	}
	handedOver, others = sets.New[string](), sets.New[string]()
	for i := range all.Items {
		if h.matches(&all.Items[i]) {
			handedOver.Insert(all.Items[i].Namespace)
		} else {
			others.Insert(all.Items[i].Namespace)
		}
	}
	return handedOver, others, nil
}

// untilChanged returns a context that ends when the set of namespaces that are handed over
// changes.
func (h *handOver) untilChanged(ctx context.Context, watched sets.Set[string]) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := func() bool {
		now, _, err := h.namespaces(ctx)
		return err == nil && !now.Equal(watched)
	}
	look := func() {
		if !changed() {
			return
		}
		time.AfterFunc(changeDelay, func() {
			if changed() {
				cancel()
			}
		})
	}
	err := h.follow(ctx, func(*rbacv1.RoleBinding) { look() })
	look() // a change before the watch is no event
	return ctx, cancel, err
}

// follow calls see for every RoleBinding, and for its changes until the context ends.
func (h *handOver) follow(ctx context.Context, see func(*rbacv1.RoleBinding)) error {
	informer, err := h.bindings.GetInformer(ctx, &rbacv1.RoleBinding{})
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { see(bindingOf(obj)) },
		UpdateFunc: func(_, obj any) { see(bindingOf(obj)) },
		DeleteFunc: func(obj any) { see(bindingOf(obj)) },
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) })
	return nil
}

// bindingOf returns the RoleBinding of an event; for a missed deletion, the last known
// version.
func bindingOf(obj any) *rbacv1.RoleBinding {
	if missed, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	binding, _ := obj.(*rbacv1.RoleBinding)
	return binding
}

// run runs the controllers until the context ends, with a new manager after each change of
// the namespaces, because no namespace can be added to a cache.
func (h *handOver) run(ctx context.Context, config *rest.Config, options ctrl.Options, controllers []Controller) error {
	for ctx.Err() == nil {
		watched, others, err := h.namespaces(ctx)
		if err != nil {
			return err
		}
		ctrl.Log.Info("watching the namespaces that are handed over", "namespaces", sets.List(watched), "notHandedOver", sets.List(others))
		options.Cache.DefaultNamespaces = watch(sets.List(watched)...)
		served := controllers
		if watched.Len() == 0 {
			served = nil // a cache without namespaces would watch all
		}
		running := append([]Controller{&rights{handOver: h, watched: watched, kinds: served}}, served...)
		until, cancel, err := h.untilChanged(ctx, watched)
		if err == nil {
			err = runManager(until, config, options, running)
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// rights adds the finalizer to a RoleBinding, and removes it.
type rights struct {
	*handOver
	client  client.Client
	watched sets.Set[string]
	kinds   []Controller
}

func (r *rights) Kind() client.Object { return nil }

func (r *rights) SetupWithManager(mgr ctrl.Manager) error {
	r.client = mgr.GetClient()
	c := ctrl.NewControllerManagedBy(mgr).Named("rights").
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			return r.follow(ctx, func(binding *rbacv1.RoleBinding) {
				if binding != nil {
					queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
				}
			})
		}))
	for _, controller := range r.kinds {
		if kind := controller.Kind(); kind != nil {
			c = c.Watches(kind, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: r.account.Name}}}
			}))
		}
	}
	return c.Complete(r)
}

// Reconcile adds the finalizer to the RoleBinding of a namespace, or removes it.
func (r *rights) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := &rbacv1.RoleBinding{}
	if err := r.bindings.Get(ctx, request.NamespacedName, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	matches := r.matches(binding)
	if matches && !r.watched.Has(request.Namespace) {
		return reconcile.Result{}, nil // the next manager watches the namespace
	}
	used := false
	if matches {
		var err error
		if used, err = r.inUse(ctx, request.Namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	changed, finalizer := binding.DeepCopy(), inUse+"/"+r.account.Namespace
	switch {
	case !used:
		controllerutil.RemoveFinalizer(changed, finalizer)
	case binding.DeletionTimestamp == nil:
		controllerutil.AddFinalizer(changed, finalizer)
	}
	if len(changed.Finalizers) == len(binding.Finalizers) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(binding, client.MergeFromWithOptimisticLock{})
	return reconcile.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, changed, patch))
}

// inUse tells whether the namespace has an object of the operator's kinds.
func (r *rights) inUse(ctx context.Context, namespace string) (bool, error) {
	for _, controller := range r.kinds {
		kind := controller.Kind()
		if kind == nil {
			continue
		}
		list, err := listOf(r.client.Scheme(), kind)
		if err != nil {
			return false, err
		}
		if err := r.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return false, err
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// listOf returns an empty list of a kind.
func listOf(scheme *runtime.Scheme, kind client.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(kind, scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	list, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil //nolint:forcetypeassert // the list of a client.Object
}
