// Package apt installs packages of Debian.
package apt

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"asterism.dev/tools/internal/cache"
)

// Install installs packages by commands that run runs, one after the other. It refreshes the
// lists of packages only if the first attempt fails: they may be missing or stale. Of several
// tools, one installs at a time.
func Install(run func(name string, args ...string) error, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("packages %s are missing (names of Debian): install them", strings.Join(packages, ", "))
	}
	folder, err := cache.Dir("")
	if err != nil {
		return err
	}
	unlock, err := cache.Lock(filepath.Join(folder, "apt.lock"), func() {})
	if err != nil {
		return err
	}
	defer unlock()
	install := func() error {
		args := []string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends"}
		return run("env", append(args, packages...)...)
	}
	if install() == nil {
		return nil
	}
	if err := run("apt-get", "update"); err != nil {
		return err
	}
	return install()
}
