package driverimage

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"asterism.dev/tools/internal/archive"
)

// library matches the path of a library or the loader in a line of ldd(1).
var library = regexp.MustCompile(`(/\S+) \(0x`)

// mountPrograms returns this machine's mount(8) and umount(8), which the driver calls, and
// their libraries.
func mountPrograms(ctx context.Context) ([]archive.File, error) {
	paths := map[string]string{}
	for _, name := range []string{"mount", "umount"} {
		program, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("the driver's image needs %s of this machine: %w", name, err)
		}
		paths["usr/bin/"+name] = program
		output, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("libraries of %s: %w\n%s", program, err, output)
		}
		for _, found := range library.FindAllStringSubmatch(string(output), -1) {
			paths[strings.TrimPrefix(found[1], "/")] = found[1]
		}
	}
	var files []archive.File
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		file, err := fileOf(name, paths[name])
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
