package release

import (
	"context"
	"fmt"
	"path/filepath"

	"asterism.dev/tools/internal/gobuild"
)

// architectures of the nodes on which a release runs.
var architectures = []string{"amd64", "arm64"}

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
