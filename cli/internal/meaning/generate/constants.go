package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"asterism.dev/cli/internal/meaning"
)

// commonAPI is the package of the conditions that several kinds share.
const commonAPI = "lib/common/api/v1alpha1"

// constant is a condition type with its comment.
type constant struct {
	value, comment string
}

// constants are the condition types of a package, by the names of the constants.
type constants map[string]constant

func read(root string) (meaning.Book, error) {
	book := meaning.Book{Stages: map[string][]meaning.Condition{}}
	common, _, err := readPackage(filepath.Join(root, filepath.FromSlash(commonAPI)), nil)
	if err != nil {
		return book, err
	}
	for _, name := range []string{"ConditionReady", "ConditionAvailable", "ConditionStalled"} {
		book.Common = append(book.Common, meaning.Condition{Type: common[name].value, Text: common[name].comment})
	}
	folders, err := filepath.Glob(filepath.Join(root, "operators", "*", "api", "v1alpha1"))
	if err != nil {
		return book, err
	}
	for _, folder := range folders {
		known, kinds, err := readPackage(folder, common)
		if err != nil {
			return book, err
		}
		for kind, names := range kinds {
			for _, name := range names {
				if known[name].comment == "" {
					return book, fmt.Errorf("%s: condition %s of %s has no comment", folder, name, kind)
				}
				book.Stages[kind] = append(book.Stages[kind], meaning.Condition{Type: known[name].value, Text: known[name].comment})
			}
		}
	}
	book.Reasons, err = readReasons(root)
	return book, err
}

// readPackage returns the condition types of a package, and the names in the list
// <Kind>Conditions of each of its kinds.
func readPackage(folder string, common constants) (known constants, kinds map[string][]string, err error) {
	known, kinds = constants{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		for _, declaration := range file.Decls {
			if group, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range group.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && len(value.Values) == 1 {
						addValue(known, kinds, common, group, value)
					}
				}
			}
		}
	}
	return known, kinds, nil
}

func addValue(known constants, kinds map[string][]string, common constants, group *ast.GenDecl, spec *ast.ValueSpec) {
	name := spec.Names[0].Name
	switch value := spec.Values[0].(type) {
	case *ast.BasicLit, *ast.SelectorExpr:
		if !strings.HasPrefix(name, "Condition") {
			return
		}
		comment := spec.Doc
		if comment == nil {
			comment = group.Doc // of a constant outside a group
		}
		known[name] = constant{value: valueOf(value, common), comment: textOf(comment.Text())}
	case *ast.CompositeLit:
		if kind, ok := strings.CutSuffix(name, "Conditions"); ok {
			for _, element := range value.Elts {
				if reference, ok := element.(*ast.Ident); ok {
					kinds[kind] = append(kinds[kind], reference.Name)
				}
			}
		}
	}
}

// valueOf returns the value of a literal, or of a constant of the common package.
func valueOf(value ast.Expr, common constants) string {
	if selector, ok := value.(*ast.SelectorExpr); ok {
		return common[selector.Sel.Name].value
	}
	text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
	if err != nil {
		return ""
	}
	return text
}

var nameOfConstant = regexp.MustCompile(`\bCondition([A-Z]\w+)`)

// textOf returns a comment on one line, with the condition type instead of the name of the
// constant.
func textOf(comment string) string {
	return nameOfConstant.ReplaceAllString(strings.Join(strings.Fields(comment), " "), "$1")
}
