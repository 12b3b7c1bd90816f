package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"asterism.dev/tools/internal/source"
)

// notChildren are resources that operators create for no object of their kinds.
var notChildren = []string{
	"events", "leases.coordination.k8s.io",
	"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io", // questions to the API server
	"sharedvolumedrivers.storage.asterism.dev", // the operator creates the only one when it starts
}

// resources returns the kinds of objects that the operator creates, by the kind of their
// owner: the console lists objects of these kinds with their owner. The rights of the
// operator must agree with the kinds in packaging.yaml.
func resources(operator *source.Operator) (map[string][]v1alpha1.APIResourceReference, error) {
	rights := created(operator)
	missing := maps.Clone(rights)
	all := map[string][]v1alpha1.APIResourceReference{}
	for _, kind := range operator.Kinds {
		for _, apiVersion := range slices.Sorted(maps.Keys(kind.Creates)) {
			version, err := schema.ParseGroupVersion(apiVersion)
			if err != nil {
				return nil, fmt.Errorf("operators/%s/packaging.yaml: kinds: %s: %w", operator.Name, kind.Name, err)
			}
			for _, name := range kind.Creates[apiVersion] {
				resource, found := resourceOf(version.WithKind(name), rights)
				if !found {
					return nil, fmt.Errorf("operators/%s/packaging.yaml: kinds: %s creates %s of %s, and the operator has no right to create it", operator.Name, kind.Name, name, apiVersion)
				}
				delete(missing, resource)
				reference := v1alpha1.APIResourceReference{Kind: name, Version: version.Version}
				if !scheme.Scheme.Recognizes(version.WithKind(name)) {
					reference.Name = resource.String() // the console knows Kubernetes' kinds without it
				}
				all[kind.Name] = append(all[kind.Name], reference)
			}
		}
	}
	for resource := range missing {
		return nil, fmt.Errorf("operators/%s/packaging.yaml: kinds: the operator may create %s, and no kind has it in creates", operator.Name, resource)
	}
	return all, nil
}

// created are the resources that an operator has the right to create for objects of its
// kinds.
func created(operator *source.Operator) map[schema.GroupResource]bool {
	all := map[schema.GroupResource]bool{}
	for _, rule := range slices.Concat(operator.NamespaceRules, operator.ClusterRules) {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource := schema.GroupResource{Group: group, Resource: name}
				if !strings.Contains(name, "/") && !slices.Contains(notChildren, resource.String()) {
					all[resource] = true
				}
			}
		}
	}
	return all
}

// resourceOf returns the resource of a kind. The plural of some kinds equals the singular.
func resourceOf(kind schema.GroupVersionKind, known map[schema.GroupResource]bool) (schema.GroupResource, bool) {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	for _, resource := range []schema.GroupResource{plural.GroupResource(), singular.GroupResource()} {
		if known[resource] {
			return resource, true
		}
	}
	return schema.GroupResource{}, false
}
