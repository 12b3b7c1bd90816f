package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"asterism.dev/tools/internal/cache"
	"asterism.dev/tools/internal/gobuild"
	"asterism.dev/tools/internal/process"
	"asterism.dev/tools/internal/progress"
)

// binariesPath contains one Go module for each project whose binaries are built.
const (
	binariesPath     = "tools/cluster/binaries"
	kubernetesFolder = "kubernetes"
	kubernetesModule = "k8s.io/kubernetes"
)

// project is a Go module with one main package, which is run as one or more components.
type project struct {
	folder string // below binariesPath
	module string // its required version names the folder in the cache
	main   string // import path of the main package
	// names are the file names of the binary: it is linked once, and has a link for each
	// further name.
	names []string
}

var (
	etcdProject       = project{etcdName, "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", []string{etcdName}}
	coreDNSProject    = project{coreDNSName, "github.com/coredns/coredns", ".", []string{coreDNSName}}
	pauseProject      = project{"pause", "", ".", []string{"pause"}}
	kubernetesProject = project{kubernetesFolder, kubernetesModule, ".", []string{
		apiServerName, controllerManagerName, "kubectl", proxyName, schedulerName, kubeletName,
	}}
)

// projects lists the projects that a mode needs, quickest build first.
func projects(m mode) []project {
	if m == controlPlane {
		return []project{etcdProject, kubernetesProject}
	}
	return []project{etcdProject, pauseProject, coreDNSProject, kubernetesProject}
}

// build is a project at the version that this checkout requires.
type build struct {
	project
	source  string // the module's folder
	target  string // the cache folder with this version's binaries
	ldflags string
}

func newBuild(root, folder string, p project) (build, error) {
	b := build{project: p, source: filepath.Join(root, binariesPath, p.folder)}
	version := "v0"
	if p.module != "" {
		var err error
		if version, err = requiredVersion(filepath.Join(b.source, "go.mod"), p.module); err != nil {
			return b, err
		}
	}
	if p.module == kubernetesModule {
		b.ldflags = kubernetesVersion(version)
	}
	hash, err := b.hash()
	b.target = filepath.Join(folder, fmt.Sprintf("%s-%s-%s-%s-%s", p.folder, version, runtime.GOOS, runtime.GOARCH, hash))
	return b, err
}

func (b build) program(output string) gobuild.Program {
	return gobuild.Program{Dir: b.source, Packages: []string{b.main}, Output: output, Ldflags: b.ldflags, Verbose: true}
}

// hash covers everything that a binary depends on in this repository, and the flags of its build.
func (b build) hash() (string, error) {
	hash := sha256.New()
	program := b.program("")
	hash.Write(fmt.Appendln(nil, runtime.Version(), b.names, program.Args(), program.Env()))
	files, err := os.ReadDir(b.source)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(b.source, file.Name()))
		if err != nil {
			return "", err
		}
		hash.Write(fmt.Appendf(nil, "%s %d\n%s", file.Name(), len(content), content))
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:4]), nil
}

func requiredVersion(path, module string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		return "", err
	}
	for _, require := range file.Require {
		if require.Mod.Path == module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", path, module)
}

// kubernetesVersion gives the linker flags that set the version in /version. Without
// them the server reports v0.0.0, and clients with a minimum version refuse it.
func kubernetesVersion(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, fmt.Sprintf("-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s", pkg, version, pkg, major, pkg, minor))
	}
	return strings.Join(flags, " ")
}

// complete reports whether the target, which is renamed into place as a whole, has every file.
func (b build) complete() bool {
	return !slices.ContainsFunc(b.names, func(name string) bool {
		_, err := os.Stat(filepath.Join(b.target, name))
		return err != nil
	})
}

// buildBinaries returns the folders with the mode's binaries, after building those that
// the cache lacks.
func buildBinaries(ctx context.Context, p *progress.Progress, root string, m mode) ([]string, error) {
	folder, err := cache.Dir("bin")
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, wanted := range projects(m) {
		b, err := newBuild(root, folder, wanted)
		if err != nil {
			return nil, err
		}
		if !b.complete() {
			if err := b.make(ctx, p); err != nil {
				return nil, err
			}
		}
		folders = append(folders, b.target)
	}
	return folders, nil
}

// make compiles into a temporary folder and renames it to the target. A second caller
// waits for the first and then finds the target.
func (b build) make(ctx context.Context, p *progress.Progress) error {
	path := b.target + ".lock"
	unlock, err := cache.Lock(path, func() { p.Say("waiting for another build in %s", b.target) })
	if err != nil {
		return err
	}
	defer func() {
		_ = os.Remove(path)
		unlock()
	}()
	if b.complete() {
		return nil
	}
	temporary := b.target + ".building"
	if err := errors.Join(os.RemoveAll(temporary), os.RemoveAll(b.target)); err != nil { // the target may lack a file
		return err
	}
	what := fmt.Sprintf("building %s (once for this version)", b.folder)
	if err := p.During(what, func(line *progress.Line) error { return b.compile(ctx, line, temporary) }); err != nil {
		return err
	}
	return os.Rename(temporary, b.target)
}

// compile builds the binary into the folder, and links it to its further names.
func (b build) compile(ctx context.Context, line *progress.Line, folder string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("building needs Go on PATH, at least the version in go.mod (PATH may differ under sudo): %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	binary := filepath.Join(folder, b.names[0])
	program := b.program(binary)
	var report bytes.Buffer
	command, output := program.Command(ctx), line.Follow("", &report)
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", b.source, err, process.LastLines(gobuild.Problems(report.String()), 15))
	}
	for _, name := range b.names[1:] {
		if err := os.Link(binary, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
