// Package project reads what the repository says about its operators.
package project

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Operator is a folder in operators.
type Operator struct {
	Name string `json:"-"`
	// Namespace is the namespace in which the operator is installed.
	Namespace string `json:"namespace"`
	Kinds     []Kind `json:"kinds"`
}

// Kind is a kind of an operator.
type Kind struct {
	Name string `json:"name"`
	// Creates has the kinds of the objects that the operator creates for an object of this
	// kind, by their API version.
	Creates map[string][]string `json:"creates"`

	Group      string `json:"-"`
	Namespaced bool   `json:"-"`
}

// Operators reads the operators of the repository, sorted by name.
func Operators(root string) ([]Operator, error) {
	files, err := filepath.Glob(filepath.Join(root, "operators", "*", "packaging.yaml"))
	if err != nil {
		return nil, err
	}
	var all []Operator
	for _, file := range files {
		operator := Operator{Name: filepath.Base(filepath.Dir(file))}
		if err := read(file, &operator); err != nil {
			return nil, err
		}
		if err := operator.readDefinitions(filepath.Dir(file)); err != nil {
			return nil, err
		}
		all = append(all, operator)
	}
	return all, nil
}

// readDefinitions completes the kinds from their definitions.
func (o *Operator) readDefinitions(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "config", "crd", "*_*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		var definition struct {
			Spec struct {
				Group string                `json:"group"`
				Scope string                `json:"scope"`
				Names struct{ Kind string } `json:"names"`
			} `json:"spec"`
		}
		if err := read(file, &definition); err != nil {
			return err
		}
		i := slices.IndexFunc(o.Kinds, func(kind Kind) bool { return kind.Name == definition.Spec.Names.Kind })
		if i < 0 {
			return fmt.Errorf("%s: packaging.yaml does not list this kind", file)
		}
		o.Kinds[i].Group, o.Kinds[i].Namespaced = definition.Spec.Group, definition.Spec.Scope == "Namespaced"
	}
	return nil
}

// ParentsFirst returns the kinds of all operators: each kind after the kinds whose operators
// create objects of it.
func ParentsFirst(operators []Operator) []Kind {
	var kinds, sorted []Kind
	for _, operator := range operators {
		kinds = append(kinds, operator.Kinds...)
	}
	for len(kinds) > 0 {
		i := slices.IndexFunc(kinds, func(kind Kind) bool { return !IsCreated(kinds, kind) })
		i = max(i, 0) // kinds that create each other are in any order
		sorted, kinds = append(sorted, kinds[i]), slices.Delete(kinds, i, i+1)
	}
	return sorted
}

// IsCreated reports whether the operator of one of the kinds creates objects of a kind.
func IsCreated(by []Kind, kind Kind) bool {
	return slices.ContainsFunc(by, func(parent Kind) bool {
		for version, created := range parent.Creates {
			if strings.HasPrefix(version, kind.Group+"/") && slices.Contains(created, kind.Name) && parent.Name != kind.Name {
				return true
			}
		}
		return false
	})
}

func read(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
