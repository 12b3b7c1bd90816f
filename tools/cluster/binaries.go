package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// binariesPath contains one Go module for each project whose binaries are built.
const (
	binariesPath     = "tools/cluster/binaries"
	kubernetesFolder = "kubernetes"
	kubernetesModule = "k8s.io/kubernetes"
)

// project is a Go module whose main packages are run as components.
type project struct {
	folder   string // below binariesPath
	module   string // its required version names the folder in the cache
	binaries map[string]string
}

var (
	etcdProject = project{etcdName, "go.etcd.io/etcd/server/v3", map[string]string{
		etcdName: "go.etcd.io/etcd/server/v3",
	}}
	coreDNSProject = project{coreDNSName, "github.com/coredns/coredns", map[string]string{
		coreDNSName: "github.com/coredns/coredns",
	}}
	controlPlaneProject = project{kubernetesFolder, kubernetesModule, map[string]string{
		apiServerName:         "k8s.io/kubernetes/cmd/kube-apiserver",
		controllerManagerName: "k8s.io/kubernetes/cmd/kube-controller-manager",
		"kubectl":             "k8s.io/kubernetes/cmd/kubectl",
	}}
	nodeProject = project{kubernetesFolder, kubernetesModule, map[string]string{
		proxyName:     "k8s.io/kubernetes/cmd/kube-proxy",
		schedulerName: "k8s.io/kubernetes/cmd/kube-scheduler",
		kubeletName:   "k8s.io/kubernetes/cmd/kubelet",
	}}
	pauseProject = project{"pause", "", map[string]string{
		"pause": "asterism.dev/tools/cluster/binaries/pause",
	}}
)

// projects lists the projects that a mode needs, quickest build first.
func projects(m mode) []project {
	if m == controlPlane {
		return []project{etcdProject, controlPlaneProject}
	}
	return []project{etcdProject, pauseProject, controlPlaneProject, nodeProject, coreDNSProject}
}

// cacheRoot is shared by all checkouts: ASTERISM_CACHE, or asterism in the user's cache folder.
func cacheRoot() (string, error) {
	if root := os.Getenv("ASTERISM_CACHE"); root != "" {
		return filepath.Abs(root)
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the binaries: set ASTERISM_CACHE: %w", err)
	}
	return filepath.Join(root, "asterism"), nil
}

// build is a project at the version that this checkout requires.
type build struct {
	project
	source  string // the module's folder
	target  string // the cache folder with this version's binaries
	ldflags string
}

func newBuild(root, cache string, p project) (build, error) {
	b := build{project: p, source: filepath.Join(root, binariesPath, p.folder), ldflags: "-s -w"}
	version := "v0"
	if p.module != "" {
		var err error
		if version, err = requiredVersion(filepath.Join(b.source, "go.mod"), p.module); err != nil {
			return b, err
		}
	}
	if p.module == kubernetesModule {
		b.ldflags += kubernetesVersion(version)
	}
	hash, err := b.hash()
	b.target = filepath.Join(cache, "bin", fmt.Sprintf("%s-%s-%s-%s-%s", p.folder, version, runtime.GOOS, runtime.GOARCH, hash))
	return b, err
}

// hash covers everything that a binary depends on.
func (b build) hash() (string, error) {
	hash := sha256.New()
	hash.Write(fmt.Appendln(nil, b.ldflags, runtime.Version()))
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
	flags := ""
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s", pkg, version, pkg, major, pkg, minor)
	}
	return flags
}

func (b build) missing() []string {
	var missing []string
	for binary := range b.binaries {
		if _, err := os.Stat(filepath.Join(b.target, binary)); err != nil {
			missing = append(missing, binary)
		}
	}
	slices.Sort(missing)
	return missing
}

// buildBinaries returns the folders with the mode's binaries, after building those that
// the cache lacks.
func buildBinaries(ctx context.Context, p *progress, root string, m mode) ([]string, error) {
	cache, err := cacheRoot()
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, wanted := range projects(m) {
		b, err := newBuild(root, cache, wanted)
		if err != nil {
			return nil, err
		}
		if len(b.missing()) > 0 {
			if err := b.make(ctx, p); err != nil {
				return nil, err
			}
		}
		if len(folders) == 0 || folders[len(folders)-1] != b.target {
			folders = append(folders, b.target)
		}
	}
	return folders, nil
}

// make compiles into a temporary folder and moves each complete binary to the target. A
// second caller waits for the first and then finds the binaries in the target.
func (b build) make(ctx context.Context, p *progress) error {
	path := b.target + ".lock"
	unlock, err := lock(path, func() { p.say("waiting for another build in %s", b.target) })
	if err != nil {
		return err
	}
	defer func() {
		_ = os.Remove(path)
		unlock()
	}()
	missing := b.missing()
	if len(missing) == 0 {
		return nil
	}
	temporary := b.target + ".building"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	what := fmt.Sprintf("building %s (%s; once for this version)", strings.Join(missing, ", "), filepath.Base(b.target))
	if err := p.during(what, func() error { return b.compile(ctx, temporary, missing) }); err != nil {
		return err
	}
	if err := os.MkdirAll(b.target, 0o755); err != nil {
		return err
	}
	for _, binary := range missing {
		if err := os.Rename(filepath.Join(temporary, binary), filepath.Join(b.target, binary)); err != nil {
			return err
		}
	}
	return os.RemoveAll(temporary)
}

// compile builds the named binaries into the folder. With several packages, go build
// names each binary after its package.
func (b build) compile(ctx context.Context, folder string, names []string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("building needs Go on PATH, at least the version in go.mod (PATH may differ under sudo): %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	output := folder + "/"
	if len(names) == 1 {
		output += names[0]
	}
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", b.ldflags, "-o", output}
	for _, name := range names {
		args = append(args, b.binaries[name])
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = b.source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	report, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", b.source, err, lastLines(string(report), 15))
	}
	return nil
}
