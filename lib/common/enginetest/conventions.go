package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastApplied is the maximum size of an object for a client-side `kubectl apply`, which
// stores the object in an annotation.
const lastApplied = 256 * 1024

// kubernetesOwn are properties whose schemas are types of Kubernetes.
var kubernetesOwn = []string{"metadata", "conditions", "affinity", "tolerations", "topologySpreadConstraints", "resources"}

// Conventions checks the CustomResourceDefinitions of the directories. Every field, except
// fields of Kubernetes' types, has a description that begins with its name; every string,
// list, map and number has a bound, and every list a list type. Only paused is a boolean, as in a
// Deployment: any other field may need a third value. The definition has a status
// subresource and a column Ready, and is small enough for a client-side `kubectl apply`.
// Users with the role edit or view in a namespace have the same rights to the kinds.
func Conventions(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		for _, violation := range people(t, dir) {
			t.Errorf("%s: %s", dir, violation)
		}
		for _, definition := range readDefinitions(t, dir) {
			for _, violation := range violations(t, definition) {
				t.Errorf("%s: %s", definition.GetName(), violation)
			}
		}
	}
}

func violations(t testing.TB, definition *unstructured.Unstructured) []string {
	t.Helper()
	content, err := json.Marshal(definition.Object)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	if len(content) > lastApplied {
		found = append(found, fmt.Sprintf("%d bytes do not fit a client-side apply (%d)", len(content), lastApplied))
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		t.Fatalf("%s has no versions (error: %v)", definition.GetName(), err)
	}
	for _, version := range versions {
		version, _ := version.(map[string]any)
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		spec, _, _ := unstructured.NestedMap(schema, "properties", "spec")
		found = append(found, fieldViolations("spec", spec)...)
		// A kind without a controller, such as a policy, has no status.
		status, ok, _ := unstructured.NestedMap(schema, "properties", "status")
		if !ok {
			continue
		}
		found = append(found, fieldViolations("status", status)...)
		if _, ok, _ := unstructured.NestedMap(version, "subresources", "status"); !ok {
			found = append(found, "has no status subresource")
		}
		if !strings.Contains(fmt.Sprint(version["additionalPrinterColumns"]), "name:Ready") {
			found = append(found, "has no column Ready")
		}
	}
	slices.Sort(found)
	return found
}

// fieldViolations checks one field and the fields below it.
func fieldViolations(path string, schema map[string]any) []string {
	var found []string
	complain := func(message string) { found = append(found, path+" "+message) }
	name := path[strings.LastIndexAny(path, ".")+1:]
	description, _ := schema["description"].(string)
	if !strings.HasSuffix(name, "[]") && !strings.HasPrefix(description, name+" ") {
		complain(fmt.Sprintf("has a description that does not begin with its name: %q", description))
	}
	if slices.Contains(kubernetesOwn, name) || name == "paused" && schema["type"] == "boolean" {
		return found
	}
	for _, message := range boundless(schema) {
		complain(message)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		found = append(found, fieldViolations(path+"[]", items)...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for below, property := range properties {
		property, _ := property.(map[string]any)
		found = append(found, fieldViolations(path+"."+below, property)...)
	}
	return found
}

// boundless returns the bounds that a field lacks for its type.
func boundless(schema map[string]any) []string {
	bounds := map[any][]bound{
		"string":  {{"has no maxLength", []string{"maxLength", "enum", "format"}}},
		"integer": {{"has no minimum or maximum", []string{"minimum", "maximum"}}},
		"array":   {{"has no maxItems", []string{"maxItems"}}, {"has no list type", []string{"x-kubernetes-list-type"}}},
		"object":  nil,
		nil:       {{"has no type", []string{"x-kubernetes-int-or-string"}}, {"has no rule that bounds it", []string{"x-kubernetes-validations"}}},
	}
	if schema["additionalProperties"] != nil {
		bounds["object"] = []bound{{"has no maxProperties", []string{"maxProperties"}}}
	}
	demanded, allowed := bounds[schema["type"]]
	if !allowed {
		return []string{fmt.Sprintf("has type %v, which the conventions do not allow", schema["type"])}
	}
	var missing []string
	for _, bound := range demanded {
		if !slices.ContainsFunc(bound.keys, func(key string) bool { return schema[key] != nil }) {
			missing = append(missing, bound.missing)
		}
	}
	return missing
}

// bound requires one of the keys of a schema; missing is the violation otherwise.
type bound struct {
	missing string
	keys    []string
}
