package chart

import (
	"encoding/json"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
	"sigs.k8s.io/yaml"
)

func converted(t *testing.T, crd string) (schema, schema, error) {
	t.Helper()
	node := map[string]any{}
	if err := yaml.Unmarshal([]byte(crd), &node); err != nil {
		t.Fatal(err)
	}
	return convertSchema(node)
}

func TestSchemaAcceptsWhatAnAPIServerAccepts(t *testing.T) {
	for _, c := range []struct{ about, crd, values, message string }{
		{"required with a default", "{properties: {a: {type: string, default: b}}, required: [a]}", "{}", ""},
		{"required without a default", "{properties: {a: {type: string}}, required: [a]}", "{}", "missing property 'a'"},
		{"unknown field", "{properties: {a: {type: string}}}", "{b: c}", "additional properties 'b' not allowed"},
		{"map", "{type: object, additionalProperties: {type: integer}}", "{b: c}", "got string, want integer"},
		{"quantity as a number", "{properties: {a: {anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+Gi$', x-kubernetes-int-or-string: true}}}", "{a: 1}", ""},
		{"quantity with a bad unit", "{properties: {a: {anyOf: [{type: integer}, {type: string}], pattern: '^[0-9]+Gi$', x-kubernetes-int-or-string: true}}}", "{a: 1Xi}", "does not match pattern"},
		{"set", "{properties: {a: {type: array, items: {type: string}, x-kubernetes-list-type: set}}}", "{a: [b, b]}", "items at 0 and 1 are equal"},
		{"field with the name of a keyword", "{properties: {items: {type: string}, additionalProperties: {type: string}}}", "{items: a, additionalProperties: b}", ""},
	} {
		result, definitions, err := converted(t, c.crd)
		if err != nil || len(definitions) > 0 {
			t.Fatalf("%s: %v %v", c.about, err, definitions)
		}
		content, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.values), &values); err != nil {
			t.Fatal(err)
		}
		err = util.ValidateAgainstSingleSchema(values, content)
		if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got %v, want %q", c.about, err, c.message)
		}
	}
}

func TestSchemaRefusesUnknownKeywords(t *testing.T) {
	if _, _, err := converted(t, "{properties: {a: {type: string, nullable: true}}}"); err == nil || !strings.Contains(err.Error(), "nullable") {
		t.Errorf("got %v", err)
	}
}

// Two equal parts become one definition.
func TestSchemaSharesEqualParts(t *testing.T) {
	long := strings.Repeat("a", sharedSize)
	part := "{type: object, description: " + long + ", properties: {b: {type: string}}}"
	result, definitions, err := converted(t, "{properties: {first: {properties: {pod: "+part+"}}, second: {properties: {pod: "+part+", c: {type: string}}}}}")
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), long) || strings.Count(string(content), `"$ref"`) != 2 || len(definitions) != 1 {
		t.Errorf("got %s with %d definitions", content, len(definitions))
	}
}
