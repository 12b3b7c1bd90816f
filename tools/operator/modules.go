package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"asterism.dev/tools/internal/source"
)

const (
	modulePrefix = "asterism.dev/operators/"
	// noVersion is that of modules that a replace line finds in the repository.
	noVersion = "v0.0.0"
)

// writeModules lists the operators in the go.mod of the CLI, which imports their APIs, in that of
// the tools, which import the CLI, and in the workspace of the linters.
func writeModules(project *source.Project) error {
	for _, change := range []struct {
		file     string
		indirect bool
	}{{"cli/go.mod", false}, {"tools/go.mod", true}} {
		if err := writeModule(project, change.file, change.indirect); err != nil {
			return err
		}
	}
	return writeLintWorkspace(project)
}

func writeModule(project *source.Project, file string, indirect bool) error {
	content, err := os.ReadFile(project.Path(file))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, content, nil)
	if err != nil {
		return err
	}
	var others []*modfile.Require
	for _, require := range mod.Require {
		if !strings.HasPrefix(require.Mod.Path, modulePrefix) {
			others = append(others, require)
		}
	}
	for _, replace := range append([]*modfile.Replace(nil), mod.Replace...) {
		if name, isOperator := strings.CutPrefix(replace.Old.Path, modulePrefix); isOperator && project.Operator(name) == nil {
			if err := mod.DropReplace(replace.Old.Path, ""); err != nil {
				return err
			}
		}
	}
	for _, operator := range project.Operators {
		path := modulePrefix + operator.Name
		if err := mod.AddReplace(path, "", "../operators/"+operator.Name, ""); err != nil {
			return err
		}
		others = append(others, &modfile.Require{Mod: module.Version{Path: path, Version: noVersion}, Indirect: indirect})
	}
	mod.SetRequireSeparateIndirect(others)
	mod.SortBlocks()
	mod.Cleanup()
	formatted, err := mod.Format()
	if err != nil {
		return err
	}
	return write(project.Path(file), formatted)
}

func writeLintWorkspace(project *source.Project) error {
	const file = "tools/lint/go.work"
	content, err := os.ReadFile(project.Path(file))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(file, content, nil)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, use := range append([]*modfile.Use(nil), work.Use...) {
		known[use.Path] = true
		if name, isOperator := strings.CutPrefix(use.Path, "../../operators/"); isOperator && project.Operator(name) == nil {
			if err := work.DropUse(use.Path); err != nil {
				return err
			}
		}
	}
	for _, operator := range project.Operators {
		if path := filepath.ToSlash(filepath.Join("../../operators", operator.Name)); !known[path] {
			if err := work.AddUse(path, ""); err != nil {
				return err
			}
		}
	}
	work.SortBlocks()
	work.Cleanup()
	return write(project.Path(file), modfile.Format(work.Syntax))
}
