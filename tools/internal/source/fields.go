package source

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Field of an object's schema.
type Field struct {
	Name     string
	Schema   apiextensionsv1.JSONSchemaProps
	Required bool
}

// Fields returns the fields of an object, sorted by their names.
func Fields(object apiextensionsv1.JSONSchemaProps) []Field {
	fields := make([]Field, 0, len(object.Properties))
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		fields = append(fields, Field{Name: name, Schema: object.Properties[name], Required: slices.Contains(object.Required, name)})
	}
	return fields
}
