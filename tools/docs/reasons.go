package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// troubleshooting has one heading of level 3 for each reason.
const troubleshooting = "docs/troubleshooting.md"

// checkReasons compares the reasons of conditions and events in the Go sources with the
// headings of the troubleshooting page.
func checkReasons(root string, all pages) ([]string, error) {
	reasons, problems, err := reasonsOf(root)
	if err != nil {
		return nil, err
	}
	described := map[string]bool{}
	if page := all[troubleshooting]; page != nil {
		for _, heading := range page.headings {
			if heading.level == 3 {
				described[heading.text] = true
			}
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		if !described[reason] {
			problems = append(problems, fmt.Sprintf("%s: no heading %q, which is a reason in %s", troubleshooting, reason, reasons[reason]))
		}
	}
	for _, heading := range slices.Sorted(maps.Keys(described)) {
		if reasons[heading] == "" {
			problems = append(problems, fmt.Sprintf("%s: heading %q is not a reason in lib or operators", troubleshooting, heading))
		}
	}
	return problems, nil
}

// sources are the reasons in Go files, and the parts of reasons that are concatenated.
type sources struct {
	files    *token.FileSet
	root     string
	reasons  map[string]string // with the file of each
	kinds    map[string]string // of servers: beginnings of reasons, with the file of each
	suffixes map[string]string // appended to a kind, with the file of each
	problems []string
}

// reasonsOf returns the operators' reasons: constants whose names begin with Reason or
// reason, literals where a reason is expected, and every kind of server with every suffix.
func reasonsOf(root string) (reasons map[string]string, problems []string, err error) {
	s := &sources{
		files: token.NewFileSet(), root: root,
		reasons: map[string]string{}, kinds: map[string]string{}, suffixes: map[string]string{},
	}
	for _, folder := range []string{"lib", "operators"} {
		if err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(folder)), s.visit); err != nil {
			return nil, nil, err
		}
	}
	if (len(s.kinds) == 0) != (len(s.suffixes) == 0) {
		return nil, nil, fmt.Errorf("kinds of servers %v and suffixes of reasons %v: both or none must be found", s.kinds, s.suffixes)
	}
	for kind := range s.kinds {
		for suffix, file := range s.suffixes {
			s.reasons[kind+suffix] = file
		}
	}
	return s.reasons, s.problems, nil
}

// forTests matches folders whose code runs only in tests.
var forTests = regexp.MustCompile(`test$|^testdata$|^widget$|^bench$`)

func (s *sources) visit(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		if forTests.MatchString(entry.Name()) {
			return filepath.SkipDir
		}
		return nil
	}
	if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
		return nil
	}
	file, err := parser.ParseFile(s.files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		s.inspect(node)
		return true
	})
	return nil
}

var (
	nameOfReason = regexp.MustCompile(`^[rR]eason[A-Z]`)
	// looksLikeReason distinguishes a reason from a sentence.
	looksLikeReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

func (s *sources) inspect(node ast.Node) {
	switch node := node.(type) {
	case *ast.ValueSpec:
		s.addConstants(node)
	case *ast.AssignStmt:
		for i, left := range node.Lhs {
			if i < len(node.Rhs) && strings.EqualFold(nameOf(left), "reason") {
				s.add(node.Rhs[i])
			}
		}
	case *ast.KeyValueExpr:
		if nameOf(node.Key) == "Reason" {
			s.add(node.Value)
		}
	case *ast.BinaryExpr:
		s.addSuffix(node)
	case *ast.FuncDecl:
		s.addKind(node)
	case *ast.CallExpr:
		s.addCall(node)
	}
}

func (s *sources) addConstants(spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if nameOfReason.MatchString(name.Name) && i < len(spec.Values) {
			s.add(spec.Values[i])
		}
	}
}

// addSuffix adds a suffix that is appended to the kind of a server.
func (s *sources) addSuffix(sum *ast.BinaryExpr) {
	if nameOf(sum.X) != "kind" || sum.Op != token.ADD {
		return
	}
	if text, ok := stringOf(sum.Y); ok && looksLikeReason.MatchString(text) {
		s.suffixes[text] = s.position(sum)
	}
}

// addKind adds the result of a method kind().
func (s *sources) addKind(function *ast.FuncDecl) {
	if function.Name.Name != "kind" || function.Recv == nil || function.Body == nil || len(function.Body.List) != 1 {
		return
	}
	if returned, ok := function.Body.List[0].(*ast.ReturnStmt); ok && len(returned.Results) == 1 {
		if text, ok := stringOf(returned.Results[0]); ok {
			s.kinds[text] = s.position(function)
		}
	}
}

// argumentOfReason is the index of the argument with the reason, by function.
var argumentOfReason = map[string]int{"WaitAs": 0, "Stop": 0, "Fail": 0, "set": 2, "Event": 2}

func (s *sources) addCall(call *ast.CallExpr) {
	name := nameOf(call.Fun)
	if name == "failure" && len(call.Args) > 0 { // its first argument is a kind of server
		if text, ok := stringOf(call.Args[0]); ok {
			s.kinds[text] = s.position(call)
		}
	}
	at, ok := argumentOfReason[name]
	if !ok || at >= len(call.Args) {
		return
	}
	reason := call.Args[at]
	s.add(reason)
	if at == 0 && len(call.Args) > 1 && !isFollowed(reason) {
		s.problems = append(s.problems, fmt.Sprintf("%s: the reason of %s is not a constant: use one whose name begins with Reason", s.position(call), name))
	}
}

// isFollowed reports whether a reason is a literal or is found elsewhere.
func isFollowed(reason ast.Expr) bool {
	switch reason := reason.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return nameOf(reason.X) == "kind"
	case *ast.CallExpr: // the reason of another error
		return nameOf(reason.Fun) == "Reason"
	}
	return nameOfReason.MatchString(nameOf(reason))
}

func (s *sources) add(value ast.Expr) {
	if text, ok := stringOf(value); ok && looksLikeReason.MatchString(text) {
		s.reasons[text] = s.position(value)
	}
}

func (s *sources) position(node ast.Node) string {
	path := s.files.Position(node.Pos()).Filename
	if relative, err := filepath.Rel(s.root, path); err == nil {
		return filepath.ToSlash(relative)
	}
	return path
}

// nameOf returns the name of an identifier, or the last name of a selector.
func nameOf(node ast.Expr) string {
	switch node := node.(type) {
	case *ast.Ident:
		return node.Name
	case *ast.SelectorExpr:
		return node.Sel.Name
	}
	return ""
}

// stringOf returns the value of a string literal.
func stringOf(node ast.Expr) (string, bool) {
	literal, ok := node.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}
