package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

// model is the operator that new ones are copied from: the smallest service.
const model = "nova-scheduler"

var validName = regexp.MustCompile(`^nova(-[a-z]+)+$`)

// generatedFiles are the files of an operator that `make generate` writes.
var generatedFiles = regexp.MustCompile(`^bundle/|/zz_generated[^/]*$|^config/crd/[^/]*_[^/]*$|^config/rbac/role\.yaml$`)

// create copies the model to a new operator with other names, and adds it to the workspace.
func create(root, name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("name %q: an operator is named after its service, such as nova-example", name)
	}
	target := filepath.Join(root, "operators", name)
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("operators/%s exists", name)
	}
	source, rename := filepath.Join(root, "operators", model), renaming(name)
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil || generatedFiles.MatchString(filepath.ToSlash(relative)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return write(filepath.Join(target, rename(relative)), []byte(rename(string(content))))
	})
	if err != nil {
		return err
	}
	return changeWorkspace(filepath.Join(root, "go.work"), func(work *modfile.WorkFile) error { return work.AddUse("./operators/"+name, "") })
}

// renaming returns a function that puts the names of an operator in place of the model's, in
// every form in which files have them.
func renaming(name string) func(string) string {
	kind := kindOf(name)
	word := strings.ReplaceAll(strings.TrimPrefix(name, "nova-"), "-", "")
	names := strings.NewReplacer(
		kindOf(model), kind,
		strings.ToLower(kindOf(model)), strings.ToLower(kind),
		model, name,
		"nsched", "n"+word, // the short name for kubectl
	)
	single := regexp.MustCompile(`\bscheduler\b`) // the package, its sample, and in texts
	return func(text string) string { return single.ReplaceAllString(names.Replace(text), word) }
}

// kindOf returns NovaExample for nova-example.
func kindOf(name string) (kind string) {
	for part := range strings.SplitSeq(name, "-") {
		kind += strings.ToUpper(part[:1]) + part[1:]
	}
	return kind
}
