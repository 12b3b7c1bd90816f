package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/apigroup"
	"asterism.dev/cli/tree"
	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// refuseInUse returns an error while objects exist that only a running operator can remove.
func (p *planner) refuseInUse(ctx context.Context) error {
	objects, unread, err := p.cluster.Objects(ctx, "", slices.DeleteFunc(cluster.Own(), p.isOfOther)...)
	if err != nil {
		return err
	}
	if len(unread) > 0 {
		return fmt.Errorf("%w: ask for the right to list this kind in all namespaces, because the operators must be kept while an object exists", unread[0])
	}
	roots := tree.New(objects).Roots()
	for _, kind := range cluster.OwnClusterScoped() {
		if kind.Kind == "SharedVolumePolicy" || p.isOfOther(kind) { // a policy has no finalizer
			continue
		}
		ofCluster, err := p.list(ctx, kind, "")
		if err != nil {
			return err
		}
		roots = append(roots, ofCluster...) // after the SharedVolumes, which keep them; the driver is the last
	}
	if len(roots) == 0 {
		return nil
	}
	var lines []string
	for _, o := range roots {
		lines = append(lines, "  "+deletion(o))
	}
	return fmt.Errorf("the operators are still needed: they remove what they have registered for these objects. First type\n%s", strings.Join(lines, "\n"))
}

// isOfOther tells whether a kind belongs to operators that are installed in another way, and stay.
func (p *planner) isOfOther(kind schema.GroupVersionKind) bool {
	if kind.Group == storagev1.GroupVersion.Group {
		return p.hasOther(storageNamespace)
	}
	return p.hasOther(systemNamespace)
}

func deletion(o *unstructured.Unstructured) string {
	c := Command{Args: []string{kubectl, deleteVerb, strings.ToLower(o.GetKind()), o.GetName()}}
	if o.GetNamespace() != "" {
		c.Args = append(c.Args, "-n", o.GetNamespace())
	}
	return c.String()
}

// handedOver returns the namespaces whose RoleBindings give rights to the operators.
func (p *planner) handedOver(ctx context.Context) ([]string, error) {
	bindings, err := p.list(ctx, bindingKind, "")
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for _, o := range bindings {
		if o.GetName() == "asterism-meta-operator" && o.GetNamespace() != systemNamespace {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// deleteDefinitions adds a step that deletes the kinds, if --delete-crds is given.
func (p *planner) deleteDefinitions(ctx context.Context) error {
	if !p.DeleteCRDs {
		return nil
	}
	definitions, err := p.list(ctx, definitionKind, "")
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(definitions, func(o *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		return !apigroup.IsOwn(group) || p.isOfOther(schema.GroupVersionKind{Group: group})
	})
	p.remove("Delete the kinds, and every object of these kinds", own)
	return nil
}
