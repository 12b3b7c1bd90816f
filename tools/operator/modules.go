package main

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"asterism.dev/tools/internal/source"
)

const modulePrefix = "asterism.dev/operators/"

// writeModules lists the operators in the go.mod of the CLI, which imports their APIs, in that of
// the tools, which import the CLI, and in the workspace of the linters.
func writeModules(project *source.Project) error {
	for _, file := range []string{"cli/go.mod", "tools/go.mod"} {
		if err := writeModule(project, file); err != nil {
			return err
		}
	}
	return writeLintWorkspace(project)
}

// writeModule requires every operator if the module requires one, because the module then
// imports what lists all of them.
func writeModule(project *source.Project, file string) error {
	content, err := os.ReadFile(project.Path(file))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, content, nil)
	if err != nil {
		return err
	}
	var requires []*modfile.Require
	var example *modfile.Require
	for _, require := range mod.Require {
		if strings.HasPrefix(require.Mod.Path, modulePrefix) {
			example = require
		} else {
			requires = append(requires, require)
		}
	}
	for _, replace := range slices.Clone(mod.Replace) {
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
		if example != nil {
			requires = append(requires, &modfile.Require{Mod: module.Version{Path: path, Version: example.Mod.Version}, Indirect: example.Indirect})
		}
	}
	mod.SetRequireSeparateIndirect(requires)
	mod.SortBlocks()
	mod.Cleanup()
	formatted, err := mod.Format()
	if err != nil {
		return err
	}
	return write(project.Path(file), formatted)
}

// writeLintWorkspace replaces the operators in the workspace of the linters.
func writeLintWorkspace(project *source.Project) error {
	return changeWorkspace(project.Path("tools/lint/go.work"), func(work *modfile.WorkFile) error {
		for _, use := range slices.Clone(work.Use) {
			if name, isOperator := strings.CutPrefix(use.Path, "../../operators/"); isOperator && project.Operator(name) == nil {
				if err := work.DropUse(use.Path); err != nil {
					return err
				}
			}
		}
		for _, operator := range project.Operators {
			if err := work.AddUse("../../operators/"+operator.Name, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeWorkspace rewrites a go.work file.
func changeWorkspace(path string, change func(*modfile.WorkFile) error) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(path, content, nil)
	if err != nil {
		return err
	}
	if err := change(work); err != nil {
		return err
	}
	work.SortBlocks()
	work.Cleanup()
	return write(path, modfile.Format(work.Syntax))
}
