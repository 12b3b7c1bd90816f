package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shells are the languages of blocks with commands. A block without a language may also
// contain commands.
var shells = []string{"", "sh", "bash", "shell", "console"}

var (
	// manifest is the operand of kubectl's options -f and -k.
	manifest = regexp.MustCompile(`\s(?:-f|-k|--filename|--kustomize)[ =]([^\s;|&)]+)`)
	// inTree is a path that begins with a folder.
	inTree = regexp.MustCompile(`(?:^|[\s"'=(])(?:\./)?(\.?[a-z][\w-]*/[\w./-]+)`)
	// written is a file that a command writes.
	written = regexp.MustCompile(`>\s*([^\s;|&)]+)`)
	// makeArguments are the words after make.
	makeArguments = regexp.MustCompile(`(?:^|[\s(])make((?:[ ]+[^\s;|&)#]+)*)`)
	// target is the line of a target in the Makefile.
	target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	// releasedFile is a file that `make release` writes.
	releasedFile = regexp.MustCompile(`\.release/[\w./-]*\w`)
	// manifestName is a file of dist in the source of tools/packaging.
	manifestName = regexp.MustCompile(`"([a-z-]+\.yaml)"`)
	// word is a name of a target.
	word = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// checkCommands finds manifests, scripts, folders and make targets that a page's commands
// name and that do not exist.
func checkCommands(root string, all pages) ([]string, error) {
	known, err := readKnownNames(root)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, from := range all.sorted() {
		outputs := outputsOf(from)
		for _, block := range from.blocks {
			if !slices.Contains(shells, block.language) {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block.text, "\\\n", " ")) {
				for _, missing := range known.missing(root, path.Dir(from.path), line, outputs) {
					problems = append(problems, fmt.Sprintf("%s: %q: %s does not exist", from.path, strings.TrimSpace(line), missing))
				}
			}
		}
	}
	return problems, nil
}

// outputsOf returns the files that a page's commands write.
func outputsOf(from *page) []string {
	var outputs []string
	for _, block := range from.blocks {
		for _, found := range written.FindAllStringSubmatch(block.text, -1) {
			outputs = append(outputs, found[1])
		}
	}
	return outputs
}

// knownNames are the existing names that a command may contain.
type knownNames struct {
	folders       []string // at the top of the repository
	targets       []string // of the Makefile
	installations []string // that `make push` writes
	released      []string // by `make release`
}

func readKnownNames(root string) (knownNames, error) {
	var known knownNames
	entries, err := os.ReadDir(root)
	if err != nil {
		return known, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			known.folders = append(known.folders, entry.Name())
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return known, err
	}
	for _, found := range target.FindAllStringSubmatch(string(makefile), -1) {
		known.targets = append(known.targets, found[1])
	}
	if known.released, err = readReleased(root, string(makefile)); err != nil {
		return known, err
	}
	known.installations, err = readInstallations(filepath.Join(root, "tools", "demo", "operators.go"))
	return known, err
}

// readReleased reads the names of files that exist only in a release: those that the Makefile
// names at the end of `make release`, and the manifests of tools/packaging.
func readReleased(root, makefile string) ([]string, error) {
	released := releasedFile.FindAllString(makefile, -1)
	source, err := os.ReadFile(filepath.Join(root, "tools", "packaging", "internal", "install", "install.go"))
	if err != nil {
		return nil, err
	}
	for _, found := range manifestName.FindAllSubmatch(source, -1) {
		released = append(released, ".release/dist/"+string(found[1]))
	}
	return released, nil
}

// readInstallations reads the names of the overlays that `make push` writes: the first
// string of each entry of the variable installations.
func readInstallations(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var names []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "installations" || len(spec.Values) == 0 {
			return true
		}
		list, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return false
		}
		for _, element := range list.Elts {
			if entry, ok := element.(*ast.CompositeLit); ok && len(entry.Elts) > 0 {
				if name, ok := stringOf(entry.Elts[0]); ok {
					names = append(names, name)
				}
			}
		}
		return false
	})
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no installations are found", file)
	}
	return names, nil
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

// missing returns the names in a line that do not exist. A path is relative to the root of
// the repository or to the page's own folder.
func (t knownNames) missing(root, folder, line string, outputs []string) []string {
	var missing []string
	add := func(name string) {
		if !slices.Contains(missing, name) && !t.exists(root, folder, name, outputs) {
			missing = append(missing, name)
		}
	}
	if strings.Contains(line, "kubectl") {
		for _, found := range manifest.FindAllStringSubmatch(line, -1) {
			add(found[1])
		}
	}
	for _, found := range inTree.FindAllStringSubmatch(line, -1) {
		if top, _, _ := strings.Cut(found[1], "/"); slices.Contains(t.folders, top) || top == ".demo" {
			add(found[1])
		}
	}
	for _, found := range makeArguments.FindAllStringSubmatch(line, -1) {
		for _, name := range strings.Fields(found[1]) {
			if word.MatchString(name) && !slices.Contains(t.targets, name) {
				missing = append(missing, "make "+name)
			}
		}
	}
	return missing
}

func (t knownNames) exists(root, folder, name string, outputs []string) bool {
	name = strings.TrimRight(strings.TrimPrefix(name, "./"), ".,:")
	if name == "-" || strings.ContainsAny(name, "<$*") || strings.Contains(name, "://") || slices.Contains(outputs, name) {
		return true
	}
	if slices.Contains(t.released, name) {
		return true
	}
	name = strings.TrimPrefix(name, ".release/") // make release writes charts with other images
	if installation, ok := strings.CutPrefix(name, ".demo/"); ok {
		_, err := os.Stat(filepath.Join(root, "examples", installation)) // `make push` writes examples as well
		return err == nil || slices.Contains(t.installations, installation)
	}
	for _, from := range []string{".", folder} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(from), filepath.FromSlash(name))); err == nil {
			return true
		}
	}
	return false
}
