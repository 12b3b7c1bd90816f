package release

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// architectures of the nodes on which a release runs.
var architectures = []string{"amd64", "arm64"}

// goFlags keep the paths, the user and the time of the build out of the program.
var goFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid="}

// Program builds the program of an operator for an architecture, and returns its path.
type Program func(ctx context.Context, operator, architecture string) (string, error)

// goProgram builds in the workspace, with the versions of modules that the tests use.
func (r *release) goProgram(ctx context.Context, operator, architecture string) (string, error) {
	binary := filepath.Join(r.folder, programsFolder, architecture, operator)
	args := append([]string{"build"}, goFlags...)
	build := exec.CommandContext(ctx, "go", append(args, "-o", binary, "./operators/"+operator+"/cmd")...)
	build.Dir = r.Root
	build.Env = append(os.Environ(),
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0",
		"GOWORK="+filepath.Join(r.Root, "go.work"), "GOFLAGS=", "GOEXPERIMENT=")
	if message, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s for %s: %w\n%s", operator, architecture, err, message)
	}
	return binary, nil
}
