package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"asterism.dev/tools/internal/apt"
	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// requirement is a file of the machine and the Debian package that contains it.
type requirement struct{ name, pkg string }

var requirements = []requirement{
	{containerdName, containerdName},
	{"ctr", containerdName},
	{"runc", "runc"},
	{"nft", "nftables"},
	{"ip", "iproute2"},
	{"mount", "mount"},
	{cniPlugins + "/ptp", "containernetworking-plugins"},
	{cniPlugins + "/host-local", "containernetworking-plugins"},
	{cniPlugins + "/loopback", "containernetworking-plugins"},
}

func missingPackages() []string {
	var missing []string
	for _, r := range requirements {
		if !exists(commandPath(r.name)) && !slices.Contains(missing, r.pkg) {
			missing = append(missing, r.pkg)
		}
	}
	return missing
}

func (c *cluster) installPackages(ctx context.Context, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return c.progress.During("installing Debian packages: "+strings.Join(missing, " "), func(line *progress.Line) error {
		return apt.Install(func(name string, args ...string) error { return follow(ctx, line, name, args...) }, missing...)
	})
}

// commandPath also searches the sbin folders, which an ordinary user's PATH lacks.
func commandPath(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, folder := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path := filepath.Join(folder, name); exists(path) {
			return path
		}
	}
	return name
}

// runCommand returns the command's output only as part of an error.
func runCommand(ctx context.Context, name string, args ...string) error {
	return follow(ctx, nil, name, args...)
}

// follow is runCommand that shows the last line of the output as the detail of a step.
func follow(ctx context.Context, line *progress.Line, name string, args ...string) error {
	var log bytes.Buffer
	output := line.Follow("", &log)
	command := exec.CommandContext(ctx, commandPath(name), args...)
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, process.LastLines(log.String(), 12))
	}
	return nil
}
