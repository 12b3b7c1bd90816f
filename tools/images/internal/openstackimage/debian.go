package openstackimage

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"asterism.dev/tools/images/internal/aptsource"
	"asterism.dev/tools/internal/mounts"
	"asterism.dev/tools/internal/process"
)

// inNamespaces runs a command in new namespaces of mounts, processes and host name. When
// this program ends, even killed, the kernel ends the command with its processes. The
// command's mounts are not visible outside.
func (b *build) inNamespaces(ctx context.Context, name string, args ...string) error {
	command := exec.CommandContext(ctx, "sh", append([]string{"-euc", `hostname localhost; exec "$@"`, "sh", name}, args...)...)
	command.Env = append(proxies(ctx),
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	// The kernel sends Pdeathsig when the thread that started the command ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return b.logged(command)
}

// inRoot runs a shell script inside the root file system.
func (b *build) inRoot(ctx context.Context, script string, args ...string) error {
	const enter = `mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; exec chroot "$@"`
	return b.inNamespaces(ctx, "sh", append([]string{"-euc", enter, "sh", b.root(), "sh", "-euxc", script, "sh"}, args...)...)
}

// logged runs a command with its output in the build's log. An error contains the log's
// last lines.
func (b *build) logged(command *exec.Cmd) error {
	path := b.log()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("build log: %w", err)
	}
	defer func() { _ = log.Close() }()
	output := io.Writer(log)
	if b.line != nil {
		output = b.line.Follow("", log)
	}
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		content, _ := os.ReadFile(path)
		return fmt.Errorf("%s: %w; last lines of %s:\n%s", filepath.Base(command.Path), err, path, process.LastLines(string(content), 15))
	}
	return nil
}

// prepareApt makes apt usable in the root file system, and reads the lists of packages.
func (b *build) prepareApt(ctx context.Context, recipe base) error {
	if err := configureApt(ctx, b.root(), b.debian); err != nil {
		return err
	}
	if err := b.resolveNames(ctx); err != nil {
		return err
	}
	return b.inRoot(ctx, recipe.Prepare)
}

// resolveNames gives the root file system the machine's name servers, which the image lacks.
func (b *build) resolveNames(ctx context.Context) error {
	target := filepath.Join(b.root(), "etc", "resolv.conf")
	return b.logged(exec.CommandContext(ctx, "cp", "--remove-destination", "--dereference", "/etc/resolv.conf", target))
}

// configureApt writes the machine's sources to the root file system, and the settings that
// they may need: proxies, checks of dates, and retries.
func configureApt(ctx context.Context, root string, debian aptsource.Debian) error {
	var settings strings.Builder
	for line := range strings.Lines(aptSettings(ctx)) {
		for _, prefix := range []string{"Acquire::http::Proxy ", "Acquire::https::Proxy ", "Acquire::Check-", "Acquire::Retries "} {
			if strings.HasPrefix(line, prefix) {
				settings.WriteString(line)
			}
		}
	}
	for path, content := range map[string]string{
		"etc/apt/sources.list":       strings.Join(debian.Lines, "\n") + "\n",
		"etc/apt/apt.conf.d/90build": settings.String(),
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			return fmt.Errorf("configure apt: %w", err)
		}
	}
	return nil
}

// aptSettings returns apt's configuration of downloads, empty without apt.
func aptSettings(ctx context.Context) string {
	output, err := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output()
	if err != nil {
		return ""
	}
	return string(output)
}

// proxies returns the environment variables with proxies for debootstrap's downloads.
func proxies(ctx context.Context) []string {
	var found []string
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			found = append(found, name+"="+value)
		}
	}
	if len(found) > 0 {
		return found
	}
	for line := range strings.Lines(aptSettings(ctx)) {
		for _, scheme := range []string{"http", "https"} {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "Acquire::"+scheme+"::Proxy "); ok {
				found = append(found, scheme+"_proxy="+strings.Trim(value, `";`))
			}
		}
	}
	return found
}

// removeTree deletes a build directory, and fails if a mount is inside it.
func removeTree(dir string) error {
	points, err := mounts.Below(dir)
	if err != nil {
		return fmt.Errorf("look for mounts below %s: %w", dir, err)
	}
	if len(points) > 0 {
		return fmt.Errorf("a file system is mounted on %s, inside the build directory: unmount it first", points[0])
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove build directory: %w", err)
	}
	return nil
}
