package enginetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// A case has its output as golden file, or the difference from the output of a base, which is
// a case of the same folder.
const (
	outputFile     = "out.yaml"
	differenceFile = "out.diff"
)

// order sorts cases: each may have the cases before it as bases. The first ones have no base.
func order(name string) string {
	if slices.Contains([]string{"minimal", "full", "longest-name"}, name) {
		return ""
	}
	return name
}

// goldenFiles returns the contents of both files for an output, of which one is empty. The
// difference is from the nearest base, and must have at most two thirds of the lines. Of bases
// that are equally near, the last is taken: minimal comes after longest-name.
func goldenFiles(dir, output string) map[string]string {
	files := map[string]string{outputFile: output, differenceFile: ""}
	limit := strings.Count(output, "\n") * 2 / 3
	bases, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", outputFile)) // the pattern is valid
	for _, path := range bases {
		name := filepath.Base(filepath.Dir(path))
		if order(name) >= order(filepath.Base(dir)) {
			continue
		}
		changes := difference(filepath.Join("..", name, outputFile), readFile(path), outputFile, output)
		if lines := strings.Count(changes, "\n"); lines <= limit {
			files, limit = map[string]string{outputFile: "", differenceFile: changes}, lines
		}
	}
	return files
}

// orphans returns the golden files without a fixture.
func orphans(testdata string) []string {
	files, _ := filepath.Glob(filepath.Join(testdata, "*", "out.*")) // the pattern is valid
	return slices.DeleteFunc(files, func(path string) bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(path), "in.yaml"))
		return err == nil
	})
}

// readFile returns nothing for a file that does not exist.
func readFile(path ...string) string {
	content, _ := os.ReadFile(filepath.Join(path...))
	return string(content)
}

func updateGolden(dir, output string) error {
	var failed error
	for name, content := range goldenFiles(dir, output) {
		path := filepath.Join(dir, name)
		if content == "" {
			_ = os.RemoveAll(path) // checkGolden refuses what remains
			continue
		}
		failed = errors.Join(failed, os.WriteFile(path, []byte(content), 0o644)) //nolint:gosec // a test's data
	}
	return failed
}

func checkGolden(dir, output string) error {
	whole, changes := readFile(dir, outputFile), readFile(dir, differenceFile)
	files := goldenFiles(dir, output)
	switch {
	case whole == files[outputFile] && changes == files[differenceFile]:
		return nil
	case whole != "" && changes != "":
		return fmt.Errorf("%s has both %s and %s: one of them is stale", dir, outputFile, differenceFile)
	case whole == "" && changes == "":
		return fmt.Errorf("%s has neither %s nor %s", dir, outputFile, differenceFile)
	case changes != "":
		base, hunks, _ := strings.Cut(strings.TrimPrefix(changes, "--- "), "\n+++ "+outputFile+"\n")
		whole = patched(readFile(dir, base), hunks)
	}
	if whole == output {
		return fmt.Errorf("%s has the right output in the wrong file, or with another base than the nearest", dir)
	}
	return fmt.Errorf("%s has another output:\n%s", dir, difference("committed", whole, "now", output))
}

// patched applies the hunks of a difference.
func patched(base, hunks string) string {
	text, lines, next := "", slices.Collect(strings.Lines(base)), 0
	for line := range strings.Lines(hunks) {
		switch line[0] {
		case '@':
			var first int
			_, _ = fmt.Sscanf(line, "@@ -%d", &first) // without a number, the text differs
			for ; next < min(first-1, len(lines)); next++ {
				text += lines[next]
			}
		case '-':
			next++
		case '+':
			text += line[1:]
		default:
			text += line[1:]
			next++
		}
	}
	return text + strings.Join(lines[min(next, len(lines)):], "")
}

// difference returns a unified diff. The heading of a hunk is the stage and kind of its child.
func difference(from, before, to, after string) string {
	const context = 2
	a, b := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	text := fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	for _, hunk := range difflib.NewMatcherWithJunk(a, b, false, nil).GetGroupedOpCodes(context) {
		first, last := hunk[0], hunk[len(hunk)-1]
		text += fmt.Sprintf("@@ -%d,%d +%d,%d @@%s\n", first.I1+1, last.I2-first.I1, first.J1+1, last.J2-first.J1, heading(a, first.I1+context))
		for _, change := range hunk {
			sign := "-"
			if change.Tag == 'e' {
				sign, change.J1 = " ", change.J2
			}
			for _, line := range a[change.I1:change.I2] {
				text += sign + line
			}
			for _, line := range b[change.J1:change.J2] {
				text += "+" + line
			}
		}
	}
	return text
}

func heading(lines []string, at int) string {
	var title, kind string
	for i, line := range lines {
		if found, ok := strings.CutPrefix(line, "--- #"); ok && i <= at {
			title, kind = strings.TrimSpace(found), ""
		} else if found, ok := strings.CutPrefix(line, "kind:"); ok && kind == "" {
			kind = found
		}
	}
	return strings.TrimRight(" "+title+":"+kind, ":\n")
}
