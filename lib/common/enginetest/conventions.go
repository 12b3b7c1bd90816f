package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastApplied is the most that fits into the annotation in which a client-side
// `kubectl apply` keeps what was applied.
const lastApplied = 256 * 1024

// kubernetesOwn are properties whose schemas are Kubernetes' and not ours.
var kubernetesOwn = []string{"metadata", "conditions", "affinity", "tolerations", "resources"}

// Conventions checks the CustomResourceDefinitions of the directories: every
// field of ours has a description that begins with its name, every string, list,
// map and number a bound, every list a list type; a status subresource and a
// Ready column are there, and the whole fits a client-side `kubectl apply`. People who
// may edit or view a namespace may do the same with the kinds.
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
		// What nobody reconciles, such as a policy, has no status.
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

// fieldViolations looks at one field and what is below it.
func fieldViolations(path string, schema map[string]any) []string {
	var found []string
	complain := func(message string) { found = append(found, path+" "+message) }
	name := path[strings.LastIndexAny(path, ".")+1:]
	description, _ := schema["description"].(string)
	if !strings.HasSuffix(name, "[]") && !strings.HasPrefix(description, name+" ") {
		complain(fmt.Sprintf("has a description that does not begin with its name: %q", description))
	}
	if slices.Contains(kubernetesOwn, name) {
		return found
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return schema[key] != nil })
	}
	switch schema["type"] {
	case "string":
		if !has("maxLength", "enum", "format") {
			complain("has no maxLength")
		}
	case "integer":
		if !has("minimum", "maximum") {
			complain("has no minimum or maximum")
		}
	case "array":
		if !has("maxItems") {
			complain("has no maxItems")
		}
		if !has("x-kubernetes-list-type") {
			complain("has no list type")
		}
		items, _ := schema["items"].(map[string]any)
		found = append(found, fieldViolations(path+"[]", items)...)
	case "object":
		if has("additionalProperties") && !has("maxProperties") {
			complain("has no maxProperties")
		}
	case nil:
		if schema["x-kubernetes-int-or-string"] != true {
			complain("has no type")
		}
		if !has("x-kubernetes-validations") {
			complain("has no rule that bounds it")
		}
	default:
		complain(fmt.Sprintf("has type %v, which is none that the conventions allow", schema["type"]))
	}
	properties, _ := schema["properties"].(map[string]any)
	for below, property := range properties {
		property, _ := property.(map[string]any)
		found = append(found, fieldViolations(path+"."+below, property)...)
	}
	return found
}
