// Command descriptions removes the descriptions of embedded Kubernetes types from
// CustomResourceDefinitions, in place.
//
// A Nova embeds six affinities of 34 kB each, of which 26 kB are descriptions that
// `kubectl explain pod.spec.affinity` also shows. With them, the CustomResourceDefinition
// of Nova exceeds the annotation of a client-side `kubectl apply` (262144 bytes). The
// schema itself stays, so the API server still refuses a mistyped affinity.
package main

import (
	"bytes"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// embedded are the properties with Kubernetes' own schemas. The description of the
// property itself is Asterism's and stays.
var embedded = map[string]bool{"affinity": true, "tolerations": true, "topologySpreadConstraints": true, "resources": true}

func main() {
	for _, path := range os.Args[1:] {
		if err := rewrite(path); err != nil {
			fmt.Fprintf(os.Stderr, "descriptions: %v\n", err)
			os.Exit(1)
		}
	}
}

func rewrite(path string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var definition map[string]any
	if err := yaml.Unmarshal(before, &definition); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	walk(definition)
	content, err := yaml.Marshal(definition)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	after := append([]byte("---\n"), content...)
	if bytes.Equal(before, after) {
		return nil
	}
	return os.WriteFile(path, after, 0o644)
}

// walk finds embedded schemas and removes the descriptions below them.
func walk(node any) {
	switch node := node.(type) {
	case map[string]any:
		properties, _ := node["properties"].(map[string]any)
		for name, property := range properties {
			if schema, ok := property.(map[string]any); ok && embedded[name] {
				strip(schema, schema["description"])
			}
		}
		for _, child := range node {
			walk(child)
		}
	case []any:
		for _, child := range node {
			walk(child)
		}
	}
}

// strip removes every description of a schema, and then sets own, if any, as the schema's.
func strip(schema map[string]any, own any) {
	delete(schema, "description")
	for key, child := range schema {
		if named, ok := child.(map[string]any); ok && key == "properties" {
			for _, property := range named {
				stripAny(property)
			}
			continue
		}
		stripAny(child)
	}
	if own != nil {
		schema["description"] = own
	}
}

func stripAny(node any) {
	switch node := node.(type) {
	case map[string]any:
		strip(node, nil)
	case []any:
		for _, child := range node {
			stripAny(child)
		}
	}
}
