package operator

import (
	"context"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// inUse is the domain of the finalizer that delays the deletion of a RoleBinding, and of
// the operator's rights, while the namespace has objects of the operator's kinds. The name
// in the finalizer is the operator's namespace, because a cluster may have several
// installations.
const inUse = "in-use.asterism.dev"

// rights adds the finalizer to a RoleBinding, and removes it.
type rights struct {
	*handOver
	client client.Client
}

func (r *rights) Kind() client.Object { return nil }

func (r *rights) SetupWithManager(mgr ctrl.Manager) error {
	r.client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("rights").WatchesRawSource(source.Func(r.start)).Complete(r)
}

// start adds every RoleBinding to the queue, and every namespace whose use changes.
func (r *rights) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.uses.follow(func(namespace string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: r.account.Name}})
	})
	return r.follow(ctx, func(binding *rbacv1.RoleBinding) {
		if binding != nil {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
		}
	})
}

// Reconcile adds the finalizer to the RoleBinding of a namespace, or removes it.
func (r *rights) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := &rbacv1.RoleBinding{}
	if err := r.bindings.Get(ctx, request.NamespacedName, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	used := false
	if r.matches(binding) {
		use := r.uses.of(request.Namespace)
		if use == nil {
			return reconcile.Result{}, nil // its manager reports the use when it has started
		}
		var err error
		if used, err = use.inUse(ctx); err != nil {
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

// uses knows the namespaces whose managers have listed their objects.
type uses struct {
	mu      sync.Mutex
	known   map[string]*use
	changed func(namespace string) // nil until follow
}

func (u *uses) of(namespace string) *use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[namespace]
}

// follow calls changed for every namespace whose use is known or changes.
func (u *uses) follow(changed func(namespace string)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changed = changed
	for namespace := range u.known {
		changed(namespace)
	}
}

// report reports a change of the use of a namespace.
func (u *uses) report(namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changed != nil && u.known[namespace] != nil {
		u.changed(namespace)
	}
}

func (u *uses) set(namespace string, known *use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known == nil {
		delete(u.known, namespace)
		return
	}
	u.known[namespace] = known
}

// use reports whether a namespace has objects of the operator's kinds, while the namespace's
// manager runs.
type use struct {
	*handOver
	namespace string
	kinds     []Controller
	client    client.Client
}

func (u *use) Kind() client.Object { return nil }

func (u *use) SetupWithManager(mgr ctrl.Manager) error {
	u.client = mgr.GetClient()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return u.run(ctx, mgr) }))
}

func (u *use) run(ctx context.Context, mgr ctrl.Manager) error {
	defer u.uses.set(u.namespace, nil)
	report := func() { u.uses.report(u.namespace) }
	for _, controller := range u.kinds {
		kind := controller.Kind()
		if kind == nil {
			continue
		}
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { report() },
			DeleteFunc: func(any) { report() },
		}); err != nil {
			return err
		}
	}
	u.uses.set(u.namespace, u)
	report()
	<-ctx.Done()
	return nil
}

// inUse tells whether the namespace has an object of the operator's kinds.
func (u *use) inUse(ctx context.Context) (bool, error) {
	for _, controller := range u.kinds {
		kind := controller.Kind()
		if kind == nil {
			continue
		}
		list, err := listOf(u.client.Scheme(), kind)
		if err != nil {
			return false, err
		}
		if err := u.client.List(ctx, list, client.InNamespace(u.namespace), client.Limit(1)); err != nil {
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
