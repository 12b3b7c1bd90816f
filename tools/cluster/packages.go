package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// installPackages refreshes the package lists only if the first attempt fails: they may be missing or stale.
func (c *cluster) installPackages(ctx context.Context, missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	if !exists("/usr/bin/apt-get") {
		return fmt.Errorf("packages %s are missing (names of Debian): install them", strings.Join(missing, ", "))
	}
	install := func() error {
		args := []string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends"}
		return runCommand(ctx, "env", append(args, missing...)...)
	}
	return c.progress.during("installing Debian packages: "+strings.Join(missing, " "), func() error {
		if install() == nil {
			return nil
		}
		if err := runCommand(ctx, "apt-get", "update"); err != nil {
			return err
		}
		return install()
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
	output, err := exec.CommandContext(ctx, commandPath(name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, lastLines(string(output), 12))
	}
	return nil
}
