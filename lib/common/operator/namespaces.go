package operator

import (
	"context"
	"fmt"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// inUse keeps a RoleBinding, and with it the operator's rights, until the operator
// has deleted what it made in the namespace.
const inUse = "asterism.dev/in-use"

// A grant is how namespaces are handed to an operator: in each of them, a
// RoleBinding of the name of the operator's account gives to that account the
// ClusterRole of that name.
type grant struct{ account types.NamespacedName }

// grantOf the account that the operator runs as.
func grantOf() (grant, error) {
	account := types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(podServiceAccount)}
	if account.Namespace == "" || account.Name == "" {
		return grant{}, fmt.Errorf("%s is not set, and neither are both %s and %s: name the namespaces to watch, separated by commas, or set %s to the empty string to watch all",
			watchNamespace, podNamespace, podServiceAccount, watchNamespace)
	}
	return grant{account}, nil
}

// selects the RoleBindings of that name, in every namespace.
func (g grant) selects() fields.Selector {
	return fields.OneTermEqualSelector("metadata.name", g.account.Name)
}

// isGivenBy tells a hand-over from another RoleBinding of that name.
func (g grant) isGivenBy(binding *rbacv1.RoleBinding) bool {
	return binding.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.account.Name} &&
		slices.Contains(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: g.account.Namespace, Name: g.account.Name})
}

// namespaces that are handed over now.
func (g grant) namespaces(ctx context.Context, cluster client.Reader) (sets.Set[string], error) {
	var bindings rbacv1.RoleBindingList
	if err := cluster.List(ctx, &bindings, client.MatchingFieldsSelector{Selector: g.selects()}); err != nil {
		return nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over: %w", g.account.Name, err)
	}
	found := sets.New[string]()
	for i := range bindings.Items {
		if g.isGivenBy(&bindings.Items[i]) {
			found.Insert(bindings.Items[i].Namespace)
		}
	}
	return found, nil
}

// restrict a cache to these namespaces, but for the RoleBindings of the grant.
func (g grant) restrict(options *cache.Options, watched sets.Set[string]) {
	// Without any, it would be all.
	options.DefaultNamespaces = map[string]cache.Config{g.account.Namespace: {}}
	if watched.Len() > 0 {
		options.DefaultNamespaces = watch(watched.UnsortedList()...)
	}
	options.ByObject = map[client.Object]cache.ByObject{
		&rbacv1.RoleBinding{}: {Namespaces: map[string]cache.Config{cache.AllNamespaces: {FieldSelector: g.selects()}}},
	}
}

// granted follows the hand-overs while an operator runs. A change of the namespaces
// ends the manager, because a cache cannot take another one on.
type granted struct {
	grant
	client  client.Client
	watched sets.Set[string]
	kinds   []client.Object // whose deletion needs the operator
	changed func()
}

func (g *granted) SetupWithManager(mgr ctrl.Manager) error {
	g.client = mgr.GetClient()
	c := ctrl.NewControllerManagedBy(mgr).Named("namespaces").For(&rbacv1.RoleBinding{})
	if g.watched.Len() > 0 {
		for _, kind := range g.kinds {
			c = c.Watches(kind, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: g.account.Name}}}
			}))
		}
	}
	return c.Complete(g)
}

// Reconcile one namespace.
func (g *granted) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	binding := &rbacv1.RoleBinding{}
	err := g.client.Get(ctx, request.NamespacedName, binding)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if given := err == nil && g.isGivenBy(binding); given != g.watched.Has(request.Namespace) {
		log.FromContext(ctx).Info("the namespaces to watch have changed", "namespace", request.Namespace, "watched", given)
		g.changed()
		return reconcile.Result{}, nil
	} else if !given {
		return reconcile.Result{}, nil
	}
	used, err := g.inUse(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := binding.DeepCopy()
	switch {
	case !used:
		controllerutil.RemoveFinalizer(binding, inUse)
	case binding.DeletionTimestamp == nil:
		controllerutil.AddFinalizer(binding, inUse)
	}
	if len(before.Finalizers) == len(binding.Finalizers) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return reconcile.Result{}, client.IgnoreNotFound(g.client.Patch(ctx, binding, patch))
}

// inUse says whether the namespace holds an object whose deletion needs the operator.
func (g *granted) inUse(ctx context.Context, namespace string) (bool, error) {
	for _, kind := range g.kinds {
		list, err := listOf(g.client.Scheme(), kind)
		if err != nil {
			return false, err
		}
		if err := g.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		if meta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// listOf makes an empty list of a kind.
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
