package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/cli/tree"
)

// find returns an object, or nil.
func find(all *tree.Forest, kind, name string) *unstructured.Unstructured {
	if found := all.Find(kind, name); len(found) > 0 {
		return found[0]
	}
	return nil
}

// pathOf returns the objects from an object down to the object that blocks it.
func pathOf(all *tree.Forest, root *unstructured.Unstructured) []*unstructured.Unstructured {
	if path := all.Path(root); len(path) > 0 {
		return path
	}
	return []*unstructured.Unstructured{root}
}

// leafOf returns the object that blocks all others of the path.
func leafOf(path []*unstructured.Unstructured) *unstructured.Unstructured { return path[len(path)-1] }

// isStalled reports whether an object of the path has the condition Stalled.
func isStalled(path []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(path, func(o *unstructured.Unstructured) bool {
		return tree.IsOwn(o) && tree.Condition(o, "Stalled").Status == metav1.ConditionTrue
	})
}

// textOf returns the path, with an object and its state in each line.
func textOf(path []*unstructured.Unstructured) string {
	var lines []string
	for depth, o := range path {
		stem := ""
		if depth > 0 {
			stem = strings.Repeat("  ", depth-1) + "└─"
		}
		lines = append(lines, fmt.Sprintf("%s%s", stem, tree.Explain(o)))
	}
	return strings.Join(lines, "\n")
}
