package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	// releasedFile is a file that `make release` writes, at the end of this target.
	releasedFile = regexp.MustCompile(`(\.release/[\w./-]*\w)`)
	// manifestName is a file of dist in the source of tools/packaging.
	manifestName = regexp.MustCompile(`"([a-z-]+\.yaml)"`)
	// overlay is an entry of the variable installations in the source of tools/demo.
	overlay = regexp.MustCompile(`(?m)^\t\{"([a-z-]+)", "config/`)
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

func readKnownNames(root string) (known knownNames, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return known, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			known.folders = append(known.folders, entry.Name())
		}
	}
	if known.targets, err = namesIn(root, "Makefile", target); err != nil {
		return known, err
	}
	if known.released, err = namesIn(root, "Makefile", releasedFile); err != nil {
		return known, err
	}
	manifests, err := namesIn(root, "tools/packaging/internal/install/install.go", manifestName)
	if err != nil {
		return known, err
	}
	for _, name := range manifests {
		known.released = append(known.released, ".release/dist/"+name)
	}
	known.installations, err = namesIn(root, "tools/demo/operators.go", overlay)
	return known, err
}

// namesIn returns the names that the group of a pattern matches in a file. A file without names
// has another form than the pattern expects.
func namesIn(root, file string, pattern *regexp.Regexp) (names []string, err error) {
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	for _, found := range pattern.FindAllSubmatch(content, -1) {
		names = append(names, string(found[1]))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: nothing matches %s", file, pattern)
	}
	return names, nil
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
