package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tables are the pages with a row for each operator, and what the row contains for an operator.
var tables = map[string]func(page *page, text, operator string) bool{
	"README.md": func(page *page, _, operator string) bool { return slices.Contains(page.links, "operators/"+operator) },
	// The first cell of a row lists one operator or several.
	"SECURITY.md": func(_ *page, text, operator string) bool {
		return regexp.MustCompile(`(?m)^\| ([a-z-]+, )*` + regexp.QuoteMeta(operator) + `(, [a-z-]+)* \|`).MatchString(text)
	},
	"docs/helm.md": func(page *page, _, operator string) bool {
		return slices.Contains(page.links, "../charts/"+operator+"-operator")
	},
}

// checkOperators finds operators without a row in the tables of operators.
func checkOperators(root string, all pages) ([]string, error) {
	modules, err := filepath.Glob(filepath.Join(root, "operators", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	var problems []string
	for path, has := range tables {
		if all[path] == nil {
			continue // a link finds it
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		for _, module := range modules {
			if operator := filepath.Base(filepath.Dir(module)); !has(all[path], string(text), operator) {
				problems = append(problems, fmt.Sprintf("%s: no row of its table is about the operator %s", path, operator))
			}
		}
	}
	slices.SortFunc(problems, strings.Compare)
	return problems, nil
}
