package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schema is a JSON schema.
type schema = map[string]any

// Keywords of schemas.
const (
	typ        = "type"
	properties = "properties"
	additional = "additionalProperties"
	items      = "items"
	pattern    = "pattern"
	object     = "object"
)

func matching(expression string) schema { return schema{typ: "string", pattern: expression} }
func mapOf(content schema) schema       { return schema{typ: object, additional: content} }
func listOf(content schema) schema      { return schema{typ: "array", items: content} }
func setOf(content schema) schema {
	return schema{typ: "array", items: content, "uniqueItems": true}
}

// specOf returns the schema of a kind's spec in its only version.
func specOf(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	content, err := json.Marshal(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	if err != nil {
		return nil, err
	}
	spec := map[string]any{}
	err = json.Unmarshal(content, &spec)
	return spec, err
}

// converter turns schemas of CRDs into JSON schemas. A schema that occurs twice, such as that
// of an affinity, becomes a definition: Helm stores the schema in each release, and
// otherwise the schema of a ControlPlane would have six copies of every pod's settings.
type converter struct {
	definitions schema
	seen        map[string]string // names of definitions by their content
	count       map[string]int
}

// sharedSize is the length in bytes from which a schema is worth a definition.
const sharedSize = 600

// convertSchema returns the JSON schema of a CRD's schema, and its definitions.
func convertSchema(crd map[string]any) (converted, definitions schema, err error) {
	c := &converter{definitions: schema{}, seen: map[string]string{}, count: map[string]int{}}
	c.tally(crd)
	converted, err = c.convert(crd, "spec")
	return converted, c.definitions, err
}

// tally counts equal schemas.
func (c *converter) tally(node map[string]any) {
	c.count[key(node)]++
	for _, child := range children(node) {
		c.tally(child.node)
	}
}

type child struct {
	name     string
	property bool // or the value of the keyword name
	node     map[string]any
}

// children returns the schemas directly below a schema, in a stable order.
func children(node map[string]any) (found []child) {
	below, _ := node[properties].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(below)) {
		found = append(found, child{name, true, below[name].(map[string]any)})
	}
	for _, name := range []string{items, additional} {
		if below, ok := node[name].(map[string]any); ok {
			found = append(found, child{name, false, below})
		}
	}
	return found
}

// key identifies a schema by its content. Go sorts the keys of maps in JSON.
func key(node map[string]any) string {
	content, _ := json.Marshal(node)
	return string(content)
}

// reference returns a reference to the definition of a schema that occurs more than once.
func (c *converter) reference(node map[string]any, name string) (schema, error) {
	content := key(node)
	if c.count[content] < 2 || len(content) < sharedSize {
		return c.convert(node, name)
	}
	if c.seen[content] == "" {
		unique := name
		for i := 2; c.definitions[unique] != nil; i++ {
			unique = fmt.Sprint(name, i)
		}
		c.seen[content], c.definitions[unique] = unique, schema{} // reserved: a child may have the same name
		converted, err := c.convert(node, name)
		if err != nil {
			return nil, err
		}
		c.definitions[unique] = converted
	}
	return schema{"$ref": "#/$defs/" + c.seen[content]}, nil
}

func (c *converter) convert(node map[string]any, name string) (schema, error) {
	converted := schema{}
	for keyword, content := range node {
		switch keyword {
		case typ, "description", "default", "enum", pattern, "anyOf", "minimum", "maximum",
			"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			converted[keyword] = content
		case properties, items, additional, "required":
		case "x-kubernetes-list-type":
			if content == "set" {
				converted["uniqueItems"] = true
			}
		case "format", // the formats are sizes of integers, which the bounds repeat
			"x-kubernetes-validations",   // CEL: the API server evaluates these rules
			"x-kubernetes-list-map-keys", // unique keys: the API server checks them
			"x-kubernetes-map-type", "x-kubernetes-int-or-string":
		default:
			return nil, fmt.Errorf("schema of %s: no JSON schema is known for the keyword %s", name, keyword)
		}
	}
	if required := withoutDefaults(node); len(required) > 0 {
		converted["required"] = required
	}
	return converted, c.convertChildren(node, converted)
}

func (c *converter) convertChildren(node map[string]any, converted schema) error {
	fields := schema{}
	for _, below := range children(node) {
		result, err := c.reference(below.node, below.name)
		if err != nil {
			return fmt.Errorf("%s.%w", below.name, err)
		}
		if below.property {
			fields[below.name] = result
		} else {
			converted[below.name] = result
		}
	}
	if node[properties] != nil {
		converted[properties] = fields
		converted[additional] = false
	}
	return nil
}

// withoutDefaults returns the required properties that have no default: the API server
// adds defaults before it looks for required properties.
func withoutDefaults(node map[string]any) (required []any) {
	fields, _ := node[properties].(map[string]any)
	names, _ := node["required"].([]any)
	for _, name := range names {
		property, _ := fields[name.(string)].(map[string]any)
		if property["default"] == nil {
			required = append(required, name)
		}
	}
	return required
}
