package engine

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// architecture is the page that describes how the engine is layered.
const architecture = "../../../docs/architecture.md"

// layers are the engine's packages, from the top. Each package imports only packages below.
var layers = []string{"engine", "engine/internal/apply", "engine/internal/observe"}

// TestPackagesImportDownwards also checks that the page has an arrow for every import.
func TestPackagesImportDownwards(t *testing.T) {
	page := read(t, architecture)
	for at, layer := range layers {
		imported := importsOf(t, directory(layer))
		for below, other := range layers {
			name := filepath.Base(layer) + " --> " + filepath.Base(other)
			switch imports := slices.Contains(imported, "asterism.dev/lib/common/"+other); {
			case imports && below <= at:
				t.Errorf("%s imports %s, which is above it", layer, other)
			case imports != strings.Contains(page, name):
				t.Errorf("%s imports %s: %t, and %s says %q: %t", layer, other, imports, architecture, name, !imports)
			}
		}
	}
}

// TestFilesReferDownwards: of the pairs of files of which one refers to the other, at most
// one in ten refers upwards in the order of the page.
func TestFilesReferDownwards(t *testing.T) {
	page := read(t, architecture)
	for _, layer := range layers {
		order := filesInOrder(page, layer)
		references := references(t, directory(layer))
		for _, file := range goFiles(t, directory(layer)) {
			if !slices.Contains(order, file) && file != "doc.go" {
				t.Errorf("%s does not list %s/%s", architecture, layer, file)
			}
		}
		for _, file := range order {
			if !slices.Contains(goFiles(t, directory(layer)), file) {
				t.Errorf("%s lists %s/%s, which does not exist", architecture, layer, file)
			}
		}
		var up []string
		for _, r := range references {
			if slices.Index(order, r[0]) > slices.Index(order, r[1]) {
				up = append(up, r[0]+" -> "+r[1])
			}
		}
		t.Logf("%s: %d of %d references between files run upwards", layer, len(up), len(references))
		if len(references) < 15 {
			t.Fatalf("%s: only %d references between files were found", layer, len(references))
		}
		if len(up)*10 > len(references) {
			t.Errorf("%s: %d of %d references between files run upwards: %v", layer, len(up), len(references), up)
		}
	}
}

// linkOfPass matches a link of "One pass": a function, and its file.
var linkOfPass = regexp.MustCompile("\\[`(\\w+)`\\]\\((\\S+\\.go)\\)")

// TestOnePassLinksFunctions checks that the linked files have the functions.
func TestOnePassLinksFunctions(t *testing.T) {
	_, section, _ := strings.Cut(read(t, architecture), "\n## One pass\n")
	section, _, _ = strings.Cut(section, "\n## ")
	links := linkOfPass.FindAllStringSubmatch(section, -1)
	if len(links) < 15 {
		t.Fatalf("only %d links were found", len(links))
	}
	for _, link := range links {
		declared := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + link[1] + `\(`)
		if !declared.MatchString(read(t, filepath.Join(filepath.Dir(architecture), link[2]))) {
			t.Errorf("%s links %s, which %s does not have", architecture, link[1], link[2])
		}
	}
}

func directory(layer string) string { return filepath.Join("..", layer) }

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// fileInTable matches a row of the page's table of a package's files.
var fileInTable = regexp.MustCompile("(?m)^\\| `([a-z]+\\.go)` \\|")

// filesInOrder returns the files in the table below the heading of a package.
func filesInOrder(page, layer string) []string {
	_, section, _ := strings.Cut(page, "### `"+layer+"`")
	section, _, _ = strings.Cut(section, "\n### ")
	var files []string
	for _, row := range fileInTable.FindAllStringSubmatch(section, -1) {
		files = append(files, row[1])
	}
	return files
}

func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

func parse(t *testing.T, dir string) (*token.FileSet, []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range goFiles(t, dir) {
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return set, files
}

func importsOf(t *testing.T, dir string) []string {
	t.Helper()
	_, files := parse(t, dir)
	var all []string
	for _, file := range files {
		for _, spec := range file.Imports {
			all = append(all, strings.Trim(spec.Path.Value, `"`))
		}
	}
	return all
}

// emptyImporter imports every package as an empty package: only references within a package
// count.
type emptyImporter struct{}

func (emptyImporter) Import(path string) (*types.Package, error) {
	empty := types.NewPackage(path, filepath.Base(path))
	empty.MarkComplete()
	return empty, nil
}

// references returns the references between the files of a package: each pair of files once.
func references(t *testing.T, dir string) [][2]string {
	t.Helper()
	set, files := parse(t, dir)
	uses := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: emptyImporter{}, Error: func(error) {}} // errors: imports are empty
	pkg, _ := config.Check(dir, set, files, uses)
	seen := map[[2]string]bool{}
	add := func(from token.Pos, to types.Object) {
		if to == nil || to.Pkg() != pkg || !to.Pos().IsValid() {
			return
		}
		pair := [2]string{filepath.Base(set.Position(from).Filename), filepath.Base(set.Position(to.Pos()).Filename)}
		if pair[0] != pair[1] {
			seen[pair] = true
		}
	}
	for name, object := range uses.Uses {
		add(name.Pos(), object)
	}
	for selector, selection := range uses.Selections {
		add(selector.Pos(), selection.Obj())
	}
	var all [][2]string
	for pair := range seen {
		all = append(all, pair)
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}
