// Package gobuild builds this repository's programs, and those of other projects, with one
// set of flags: then the builds share one compilation of what they have in common.
package gobuild

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Program is one main package, or a list of main packages, to build.
type Program struct {
	// Dir is the folder of the module.
	Dir string
	// Packages are import paths or folders, default ".".
	Packages []string
	// Output is the file of the program, or the folder of several.
	Output string
	// Workspace is the path of a go.work; without one, the module's own versions are used.
	Workspace string
	// Platform is the operating system and the architecture, such as linux/arm64; default
	// this machine's.
	Platform string
	// Ldflags are added to those that leave out the symbols for debuggers.
	Ldflags string
	// Verbose builds print the name of each package that they compile.
	Verbose bool
}

// Flags keep the paths, the user and the time of the build out of the program.
func (p Program) Flags() []string {
	return []string{"-trimpath", "-buildvcs=false", strings.TrimSpace("-ldflags=-s -w -buildid= " + p.Ldflags)}
}

// Args is the command line.
func (p Program) Args() []string {
	args := slices.Concat([]string{"go", "build"}, p.Flags(), []string{"-o", p.Output})
	if p.Verbose {
		args = append(args, "-v")
	}
	if len(p.Packages) == 0 {
		return append(args, ".")
	}
	return append(args, p.Packages...)
}

// Env is added to the environment. It resets what would make the program differ between
// machines. With a larger heap, the compiler needs a fifth less CPU.
func (p Program) Env() []string {
	env := []string{"GOGC=400", "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off"}
	if p.Workspace != "" {
		env = append(env, "GOWORK="+p.Workspace)
	}
	if system, architecture, found := strings.Cut(p.Platform, "/"); found {
		env = append(env, "GOOS="+system, "GOARCH="+architecture)
	}
	return env
}

// Command is the whole command.
func (p Program) Command(ctx context.Context) *exec.Cmd {
	args := p.Args()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir, command.Env = p.Dir, slices.Concat(os.Environ(), p.Env())
	return command
}
