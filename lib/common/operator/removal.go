package operator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkRemoval returns an error if objects of the controllers' kinds exist in the watched
// namespaces: without the operator, their finalizers would remain, and their registrations
// at servers. A package manager runs it before it removes the operator.
func checkRemoval(ctx context.Context, config *rest.Config, addToScheme func(*runtime.Scheme) error, controllers []Controller) error {
	scheme, err := newScheme(addToScheme)
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	namespaces, err := namespacesNow(ctx, c)
	if err != nil {
		return err
	}
	var remaining []string
	for _, controller := range controllers {
		for _, namespace := range namespaces {
			found, err := objectsIn(ctx, c, controller.Kind(), namespace)
			if err != nil {
				return err
			}
			remaining = append(remaining, found...)
		}
	}
	if len(remaining) == 0 {
		return nil
	}
	return fmt.Errorf("%d objects still need this operator, which removes their finalizers and their registrations at servers. Delete the objects first, and wait until none is left:\n  %s",
		len(remaining), strings.Join(remaining, "\n  "))
}

// namespacesNow returns the watched namespaces; the empty string means all.
func namespacesNow(ctx context.Context, c client.Client) (names []string, err error) {
	if list, set := os.LookupEnv(watchNamespace); set {
		watched, err := watchedNamespaces(list)
		if err != nil || watched == nil {
			return []string{metav1.NamespaceAll}, err
		}
		return slices.Sorted(maps.Keys(watched)), nil
	}
	h := &handOver{account: types.NamespacedName{Namespace: os.Getenv(podNamespace), Name: os.Getenv(podServiceAccount)}}
	var bindings rbacv1.RoleBindingList
	if err := c.List(ctx, &bindings, client.MatchingFields{"metadata.name": h.account.Name}); err != nil {
		return nil, fmt.Errorf("listing the RoleBindings %s, which hand namespaces over: %w", h.account.Name, err)
	}
	for i := range bindings.Items {
		if h.matches(&bindings.Items[i]) {
			names = append(names, bindings.Items[i].Namespace)
		}
	}
	return names, nil
}

// objectsIn returns, for each object of a kind, the command that deletes the object, or the
// owner that would recreate the object.
func objectsIn(ctx context.Context, c client.Client, kind client.Object, namespace string) (found []string, err error) {
	if kind == nil {
		return nil, nil
	}
	list, err := listOf(c.Scheme(), kind)
	if err != nil {
		return nil, err
	}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		gvk, err := c.GroupVersionKindFor(item)
		if err != nil {
			return err
		}
		object := item.(client.Object) //nolint:forcetypeassert // an element of an ObjectList
		text := "kubectl delete " + strings.ToLower(gvk.Kind) + " " + object.GetName()
		if object.GetNamespace() != "" {
			text += " --namespace " + object.GetNamespace()
		}
		if owner := metav1.GetControllerOf(object); owner != nil {
			text = fmt.Sprintf("%s %s in namespace %s, which %s %s owns", gvk.Kind, object.GetName(), object.GetNamespace(), owner.Kind, owner.Name)
		}
		found = append(found, text)
		return nil
	})
	return found, err
}
