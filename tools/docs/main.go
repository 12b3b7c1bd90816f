// Command docs checks the repository's Markdown pages against the repository: their
// links, the files and make targets in their commands, the reasons of conditions and
// events in the troubleshooting page, the contracts of the engine, the tables of the operators, and the
// tests that pages name.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	problems, err := check(root)
	if err == nil && len(os.Args) > 2 {
		var all pages
		if all, err = readPages(root); err == nil {
			var missing []string
			missing, err = checkSite(os.Args[2], all)
			problems = append(problems, missing...)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns one line for each problem of the repository at root.
func check(root string) ([]string, error) {
	all, err := readPages(root)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, rule := range []func(string, pages) ([]string, error){checkLinks, checkCommands, checkReasons, checkContracts, checkOperators, checkTests} {
		found, err := rule(root, all)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}
