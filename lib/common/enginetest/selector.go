package enginetest

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// checkJobPods finds selectors that select the pods of a Job together with the pods of the
// service: of a PodDisruptionBudget, which would then allow no eviction, of a Service, or of
// an anti-affinity. It also finds Jobs with an affinity to pods, which may find no node.
func checkJobPods(all *problems, children []appliedChild) {
	for _, job := range children {
		if job.GetKind() != "Job" {
			continue
		}
		title := job.GetKind() + " " + job.GetName()
		for _, rule := range []string{"podAffinity", "podAntiAffinity"} {
			if _, found, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "template", "spec", "affinity", rule); found {
				all.add("%s has a %s: remove it, or the Job may find no node", title, rule)
			}
		}
		pods, _, _ := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
		for _, child := range children {
			for _, selector := range selectors(child.Object) {
				if selector.Matches(labels.Set(pods)) {
					all.add("%s %s selects the pods of %s: %s", child.GetKind(), child.GetName(), title, selector)
				}
			}
		}
	}
}

// selectors returns all selectors in an object, also in affinities.
func selectors(value any) []labels.Selector {
	var found []labels.Selector
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if fields, ok := value[key].(map[string]any); ok && (key == "selector" || key == "labelSelector") {
				found = append(found, selectorOf(fields))
				continue
			}
			found = append(found, selectors(value[key])...)
		}
	case []any:
		for _, element := range value {
			found = append(found, selectors(element)...)
		}
	}
	return found
}

// selectorOf parses a selector of a Service, which has only labels, or of another kind.
func selectorOf(fields map[string]any) labels.Selector {
	encoded, err := json.Marshal(fields)
	if err != nil {
		return labels.Nothing()
	}
	var plain map[string]string
	if json.Unmarshal(encoded, &plain) == nil {
		return labels.SelectorFromSet(plain)
	}
	var full metav1.LabelSelector
	if json.Unmarshal(encoded, &full) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(&full)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
