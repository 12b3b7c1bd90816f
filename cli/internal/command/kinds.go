package command

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/cli/cluster"
)

// crd is the part of a CustomResourceDefinition that is compared with a type.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Schema struct {
				Root property `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

type property struct {
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

// kinds compares the definitions in the cluster with the types of this program, because they have
// no version. The kinds of shared volumes may be absent: their operator is optional.
func (r *readiness) kinds(ctx context.Context) (string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	if err := r.list(ctx, "CustomResourceDefinitions", "", list); err != nil {
		return "", err
	}
	found := map[string]crd{}
	for _, o := range list.Items {
		d := crd{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			return "", err
		}
		found[d.Spec.Group+"/"+d.Spec.Names.Kind] = d
	}
	var missing, different []string
	for _, kind := range append(cluster.Own(), cluster.OwnClusterScoped()...) {
		d, exists := found[kind.Group+"/"+kind.Kind]
		switch {
		case exists && len(d.Spec.Versions) > 0:
			different = append(different, differences(d.Spec.Versions[0].Schema.Root, cluster.Scheme.AllKnownTypes()[kind], kind.Kind)...)
		case !strings.HasPrefix(kind.Group, "storage."):
			missing = append(missing, kind.Kind)
		}
	}
	switch {
	case len(missing) > 0:
		return "", failed("missing: %d kinds, such as %s: \"kubectl asterism install\"", len(missing), missing[0])
	case len(different) > 0:
		return "", failed("of another version than this program (fields: %d, such as %s): \"kubectl asterism upgrade\", or use the program of the operators' release", len(different), different[0])
	}
	return "of the version of this program", nil
}

// differences returns the paths of the fields that only the definition or only the type has.
func differences(p property, t reflect.Type, path string) []string {
	for ; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice; t = t.Elem() {
		if t.Kind() == reflect.Slice && p.Items != nil {
			p = *p.Items
		}
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "asterism.dev/") {
		return nil
	}
	fields := map[string]reflect.Type{}
	addFields(t, fields)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if below, exists := p.Properties[name]; exists {
			found = append(found, differences(below, fields[name], path+"."+name)...)
		} else {
			found = append(found, path+"."+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if fields[name] == nil {
			found = append(found, path+"."+name)
		}
	}
	return found
}

// addFields adds the fields of a struct by their names in JSON.
func addFields(t reflect.Type, to map[string]reflect.Type) {
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			to[name] = field.Type
		} else {
			addFields(field.Type, to)
		}
	}
}
