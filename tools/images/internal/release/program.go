package release

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"asterism.dev/tools/internal/gobuild"
)

// Platforms are those of the nodes on which a release can run.
var Platforms = []string{"linux/amd64", "linux/arm64"}

// architecturesOf returns the architectures of some of the platforms, without platforms those
// of all, always in the same order.
func architecturesOf(wanted []string) (architectures []string, err error) {
	if len(wanted) == 0 {
		wanted = Platforms
	}
	for _, platform := range wanted {
		if !slices.Contains(Platforms, platform) {
			return nil, fmt.Errorf("--platforms: %q is not a platform of a release: choose from %s", platform, strings.Join(Platforms, ","))
		}
	}
	for _, platform := range Platforms {
		if slices.Contains(wanted, platform) {
			architectures = append(architectures, strings.TrimPrefix(platform, "linux/"))
		}
	}
	return architectures, nil
}

// Program builds the program of an operator for an architecture, and returns its path.
type Program func(ctx context.Context, operator, architecture string) (string, error)

// goProgram builds in the workspace, with the versions of modules that the tests use.
func (r *release) goProgram(ctx context.Context, operator, architecture string) (string, error) {
	program := gobuild.Program{
		Dir: r.Root, Packages: []string{"./operators/" + operator + "/cmd"}, Platform: "linux/" + architecture,
		Output: filepath.Join(r.folder, programsFolder, architecture, operator), Workspace: filepath.Join(r.Root, "go.work"),
	}
	if message, err := program.Command(ctx).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s for %s: %w\n%s", operator, architecture, err, message)
	}
	return program.Output, nil
}
