package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestKindsAreThoseOfTheOperators compares the scheme with every definition of the repository.
func TestKindsAreThoseOfTheOperators(t *testing.T) {
	paths, err := filepath.Glob("../../operators/*/config/crd/*_*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	var namespaced, others []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		definition := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		for _, word := range append(definition.Spec.Names.ShortNames, definition.Spec.Names.Kind, definition.Spec.Names.Plural, definition.Name) {
			if kind, err := KindOf(word); err != nil || kind.Kind != definition.Spec.Names.Kind {
				t.Errorf("KindOf(%q) = %v, %v; want %s", word, kind, err, definition.Spec.Names.Kind)
			}
		}
		if definition.Spec.Scope == apiextensionsv1.ClusterScoped {
			others = append(others, definition.Spec.Names.Kind)
		} else {
			namespaced = append(namespaced, definition.Spec.Names.Kind)
		}
	}
	for name, both := range map[string][2][]string{"Own": {names(Own()), namespaced}, "OwnClusterScoped": {names(OwnClusterScoped()), others}} {
		slices.Sort(both[1])
		if !slices.Equal(both[0], both[1]) {
			t.Errorf("%s has %v, and the operators define %v", name, both[0], both[1])
		}
	}
}

func names(kinds []schema.GroupVersionKind) []string {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.Kind)
	}
	return all
}
