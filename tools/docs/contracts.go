package main

import (
	"fmt"
	"path/filepath"
	"slices"
)

// contracts is the page that lists the contracts of the engine, each with a link to its test.
const contracts = "docs/contracts.md"

// checkContracts finds tests of contracts to which the page has no link. checkLinks checks
// that a linked test exists.
func checkContracts(root string, all pages) ([]string, error) {
	tests, err := filepath.Glob(filepath.Join(root, "lib", "common", "engine", "contract[0-9]*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(tests) == 0 {
		return []string{"lib/common/engine has no tests of contracts"}, nil
	}
	page := all[contracts]
	if page == nil {
		return []string{contracts + " does not exist"}, nil
	}
	var problems []string
	for _, test := range tests {
		link := "../lib/common/engine/" + filepath.Base(test)
		if !slices.Contains(page.links, link) {
			problems = append(problems, fmt.Sprintf("%s: no link to %s", contracts, link))
		}
	}
	return problems, nil
}
