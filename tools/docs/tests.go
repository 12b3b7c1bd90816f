package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// namedTest is a test in a page: a function, or a container of test/e2e.
var namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)`|e2e (\"[^\"\n]+\")")

// checkTests finds tests that a page names and that do not exist.
func checkTests(root string, all pages) ([]string, error) {
	sources, err := testSources(root)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, page := range all.sorted() {
		text, err := os.ReadFile(filepath.Join(root, page.path))
		if err != nil {
			return nil, err
		}
		for _, found := range namedTest.FindAllStringSubmatch(string(text), -1) {
			function, container := "func "+found[1]+"(", "Describe("+found[2]
			if found[1] != "" && !strings.Contains(sources, function) || found[2] != "" && !strings.Contains(sources, container) {
				problems = append(problems, fmt.Sprintf("%s: there is no test %s", page.path, found[0]))
			}
		}
	}
	return problems, nil
}

// testSources returns the text of all tests in Go.
func testSources(root string) (string, error) {
	var sources strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		_, _ = sources.Write(text)
		return err
	})
	return sources.String(), err
}
