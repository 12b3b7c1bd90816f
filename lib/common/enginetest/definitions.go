package enginetest

import (
	"os"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// clusterScoped are the built-in kinds without a namespace that operators create or read.
var clusterScoped = map[string]bool{
	namespaceKind: true, "Node": true, "PersistentVolume": true, "StorageClass": true, "CSIDriver": true,
	"ClusterRole": true, "ClusterRoleBinding": true, "PriorityClass": true, "SecurityContextConstraints": true,
}

// definitions reads the CustomResourceDefinitions in the directories.
func definitions(t testing.TB, dirs []string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range dirs {
		for _, path := range definitionFiles(t, dir) {
			all = append(all, definition(t, path))
		}
	}
	return all
}

// parsed caches definitions by path, because they are large and often used.
var parsed sync.Map

func definition(t testing.TB, path string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	if known, ok := parsed.Load(path); ok {
		return known.(*apiextensionsv1.CustomResourceDefinition) //nolint:forcetypeassert // nothing else is stored
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, d); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	parsed.Store(path, d)
	return d
}

// mapper returns a mapper for the built-in kinds and the kinds of the definitions. Other
// kinds in the scheme count as not served.
func mapper(scheme *runtime.Scheme, defined []*apiextensionsv1.CustomResourceDefinition, notServed map[string]bool) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	custom := map[string]bool{}
	for _, d := range defined {
		custom[d.Spec.Group] = true
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if d.Spec.Scope == apiextensionsv1.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, version := range d.Spec.Versions {
			gv := schema.GroupVersion{Group: d.Spec.Group, Version: version.Name}
			if !notServed[d.Spec.Names.Kind] {
				m.AddSpecific(gv.WithKind(d.Spec.Names.Kind), gv.WithResource(d.Spec.Names.Plural), gv.WithResource(d.Spec.Names.Singular), scope)
			}
		}
	}
	for gvk := range scheme.AllKnownTypes() {
		if custom[gvk.Group] || strings.HasSuffix(gvk.Group, "asterism.dev") || notServed[gvk.Kind] {
			continue
		}
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if clusterScoped[gvk.Kind] {
			scope = meta.RESTScopeRoot
		}
		m.Add(gvk, scope)
	}
	return m
}
