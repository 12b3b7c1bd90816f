package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// helped matches a line of `make help`.
	helped = regexp.MustCompile(`(?m)^  ([a-z0-9-]+) +(\S.*)$`)
	// entered matches a folder in which a recipe works; variables of the shell are left out.
	entered = regexp.MustCompile(`\bcd ([^\s;&|()$]+)`)
	// compiled matches the start of a program of the repository: its module, and the arguments.
	compiled = regexp.MustCompile(`\bcd ([^\s;&|()$]+) && (?:\w+=\S* )*go (?:run|build) ([^;&|\n]*)`)
	packages = regexp.MustCompile(`(?:^|\s)\./([\w-][\w/-]*)`)
)

// The pipeline does not run help, operator, tidy, push, release, cli, docs, vulncheck and fmt.
// Their recipes are valid as well: they name folders and programs that exist.
func TestTargetsNameWhatExists(t *testing.T) {
	arguments := []string{"--dry-run", "NAME=nova-scheduler", "IMAGE_REGISTRY=registry.example/x", "VERSION=v1"}
	for _, target := range helped.FindAllStringSubmatch(runMake(t, "help"), -1) {
		arguments = append(arguments, target[1])
	}
	recipes := runMake(t, arguments...)
	shell := exec.CommandContext(t.Context(), "bash", "-n")
	shell.Stdin = strings.NewReader(recipes)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, folder := range entered.FindAllStringSubmatch(recipes, -1) {
		mustExist(t, folder[1])
	}
	programs := map[string]bool{}
	for _, program := range compiled.FindAllStringSubmatch(recipes, -1) {
		for _, path := range packages.FindAllStringSubmatch(program[2], -1) {
			mustExist(t, program[1], path[1])
			programs[path[1]] = true
		}
	}
	for _, known := range []string{"docs", "demo", "images", "packaging"} {
		if !programs[known] {
			t.Errorf("no target runs %s: the search is broken", known)
		}
	}
}

func mustExist(t *testing.T, path ...string) {
	t.Helper()
	folder := filepath.Join(path...)
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(root, folder)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Errorf("a recipe of the Makefile names %s, which does not exist", folder)
	}
}

// runMake runs make without the options of a make that runs this test.
func runMake(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-C", root}, arguments...)...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS")
	})
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}
