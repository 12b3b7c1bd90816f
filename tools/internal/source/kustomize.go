package source

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Render returns the objects of a kustomization, in the order of `kubectl kustomize`.
func Render(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{} // numbers are int64, as in objects that are read from an API server
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", folder, err)
		}
		if strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy") {
			object.SetNamespace("") // kustomize does not know that this kind has no namespace
		}
		objects = append(objects, object)
	}
	return objects, nil
}
