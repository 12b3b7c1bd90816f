package release

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"asterism.dev/tools/internal/archive"
)

// licenseFile matches the names of files with the conditions of a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|notice|patents|copying)`)

// licenses returns the license files of the project, of Go, and of the modules that are linked
// into a program, which the module cache has since the build.
func (r *release) licenses(ctx context.Context, program *debug.BuildInfo) (all []archive.File, err error) {
	env := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE")
	env.Dir = r.Root
	output, err := env.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	root, cache, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	folders := map[string]string{"": r.Root, "go": root}
	for _, linked := range program.Deps {
		if linked.Replace != nil {
			linked = linked.Replace
		}
		if linked.Sum == "" {
			continue // a folder of the repository
		}
		escaped, err := module.EscapePath(linked.Path)
		if err != nil {
			return nil, err
		}
		folders[linked.Path] = filepath.Join(cache, escaped+"@"+linked.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		found, err := licensesIn(folders[name], path.Join("licenses", name))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func licensesIn(folder, target string) (all []archive.File, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, archive.File{Path: path.Join(target, entry.Name()), Mode: 0o644, Content: text})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no license file, so an image cannot contain it", folder)
	}
	return all, nil
}
