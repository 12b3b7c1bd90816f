package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"asterism.dev/test/project"
)

var (
	// asterismKinds are Asterism's kinds with a namespace, parents before children.
	asterismKinds []string
	// createdKinds are those of asterismKinds whose objects an operator creates.
	createdKinds []string
	// groups are the groups of Asterism's kinds.
	groups = map[string]string{}
	// planeOperators are the operators of the control plane.
	planeOperators []string
)

// readKinds reads the kinds and operators of the repository.
func readKinds() {
	operators, err := project.Operators(repository())
	Expect(err).NotTo(HaveOccurred())
	for _, operator := range operators {
		if operator.Namespace == systemNamespace {
			planeOperators = append(planeOperators, operator.Name)
		}
	}
	kinds := project.ParentsFirst(operators)
	for _, kind := range kinds {
		groups[kind.Name] = kind.Group
		if kind.Namespaced {
			asterismKinds = append(asterismKinds, kind.Name)
		}
		if kind.Namespaced && project.IsCreated(kinds, kind) {
			createdKinds = append(createdKinds, kind.Name)
		}
	}
	for _, list := range [][]string{asterismKinds, createdKinds, planeOperators} {
		Expect(list).NotTo(BeEmpty())
	}
}

// isPlaneOperator reports whether a field manager is one of an operator of the control plane.
// The name of a controller begins with that of its operator.
func isPlaneOperator(manager string) bool {
	return slices.ContainsFunc(planeOperators, func(operator string) bool {
		return manager == operator || strings.HasPrefix(manager, operator+"-")
	})
}
