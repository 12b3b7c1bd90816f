package openstackimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"asterism.dev/tools/internal/mounts"
	"asterism.dev/tools/internal/process"
)

// keyring has the keys of Debian's archive. Apt installs nothing that none of them has signed.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// unstable is the release that has neither updates nor a security archive.
const unstable = "sid"

// mmdebstrap creates the build's root file system, and runs the hooks of the options inside.
func (b *build) mmdebstrap(ctx context.Context, input io.Reader, options ...string) error {
	all := []string{
		"--mode=root", "--format=directory", "--verbose", "--dpkgopt=" + dpkgOptions,
		"--skip=cleanup,chroot/start-stop-daemon", // configure.sh cleans
	}
	if settings := aptSettings(ctx); settings != "" {
		all = append(all, "--aptopt="+settings)
	}
	return b.inNamespaces(ctx, input, "mmdebstrap", slices.Concat(all, options, []string{b.suite, b.root()}, b.sources)...)
}

// hook is an option of mmdebstrap: a shell script that it runs. $1 is the root file system,
// and the arguments follow.
func hook(when, script string, args ...string) string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	words := []string{"sh -euc", quote(script), "sh", `"$1"`}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	return "--" + when + "-hook=" + strings.Join(words, " ")
}

// inNamespaces runs a command in new namespaces of mounts, processes and host name. When
// this program ends, even killed, the kernel ends the command with its processes. The
// command's mounts are not visible outside.
func (b *build) inNamespaces(ctx context.Context, input io.Reader, name string, args ...string) error {
	command := exec.CommandContext(ctx, "sh", append([]string{"-euc", `hostname localhost; exec "$@"`, "sh", name}, args...)...)
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.Stdin = input
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

// logged runs a command with its output in the build's log. An error contains the log's
// last lines.
func (b *build) logged(command *exec.Cmd) error {
	path := b.log()
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("build log: %w", err)
	}
	defer func() { _ = log.Close() }()
	output := b.line.Follow("", log)
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		content, _ := os.ReadFile(path)
		return fmt.Errorf("%s: %w; last lines of %s:\n%s", filepath.Base(command.Path), err, path, process.LastLines(string(content), 15))
	}
	return nil
}

// errNoSource reports that apt knows no source of Debian's own archive.
var errNoSource = errors.New("no source of Debian is configured on this machine: add it to /etc/apt, or set --mirror URL")

// debianSources returns the lines of sources.list for the mirror, or for the machine's own
// sources of Debian. A machine with another release has that release's mirrors, which have the
// release as well. Whatever a source of the machine demands, its packages must be signed by
// Debian. A third party's repository may use the same names of suites and components; apt knows
// it by its origin.
func debianSources(ctx context.Context, suite, mirror string) ([]string, error) {
	line := func(uri, suite string) string {
		return fmt.Sprintf("deb [signed-by=%s] %s %s main", keyring, uri, suite)
	}
	if mirror != "" {
		return []string{line(mirror, suite)}, nil
	}
	output, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)",
		"Created-By: Packages", "Component: main", "Origin: Debian").Output()
	if err != nil {
		return nil, fmt.Errorf("read the package sources of this machine: %w", err)
	}
	for _, release := range append([]string{suite}, Releases...) {
		var sources []string
		for target := range strings.Lines(string(output)) {
			codename, uri, _ := strings.Cut(strings.TrimSpace(target), " ")
			if part, found := strings.CutPrefix(codename, release); found && slices.Contains([]string{"", "-updates", "-security"}, part) && (part == "" || suite != unstable) {
				sources = append(sources, line(uri, suite+part))
			}
		}
		if slices.ContainsFunc(sources, func(source string) bool { return strings.HasSuffix(source, " "+suite+" main") }) {
			slices.Sort(sources) // a target for each architecture
			return slices.Compact(sources), nil
		}
	}
	return nil, errNoSource
}

// aptSettings returns the machine's settings that its sources may need: proxies, checks of
// dates, and retries.
func aptSettings(ctx context.Context) string {
	output, _ := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output() // none without apt
	var settings strings.Builder
	for line := range strings.Lines(string(output)) {
		for _, prefix := range []string{"Acquire::http::Proxy ", "Acquire::https::Proxy ", "Acquire::Check-", "Acquire::Retries "} {
			if strings.HasPrefix(line, prefix) {
				settings.WriteString(line)
			}
		}
	}
	return settings.String()
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
