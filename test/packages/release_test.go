package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pinnedCommit has the release to upgrade from while the history has no tag of a version. Its
// operators are compiled besides this tree's. Move it forward when an upgrade from it teaches
// nothing any more, or when a change that the changelog announces restarts pods.
const pinnedCommit = "8095faa3e8ca5a0c2821856bdaaab2a6cbb19fc1"

// release is a version whose images are in the registry.
type release struct {
	version string
	folder  string
}

// packaged is the name of an operator in the catalog of the release.
func (r release) packaged(operator string) string { return operator + "-operator.v" + r.version }

// formerTree returns a folder with the files of an earlier commit: of the newest version before
// this commit, or else of pinnedCommit.
func formerTree(ctx context.Context) string {
	GinkgoHelper()
	commit := pinnedCommit
	if tag, err := run(ctx, "", "git", "-C", repository(), "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^"); err == nil {
		commit = strings.TrimSpace(tag)
	}
	AddReportEntry("upgrade from", commit)
	if _, err := run(ctx, "", "git", "-C", repository(), "cat-file", "-e", commit+"^{commit}"); err != nil {
		Fail("this clone lacks commit " + commit + ", whose release the suite upgrades: type `git fetch --unshallow --tags`")
	}
	return unpack(ctx, `git archive "$2"`, commit)
}

// currentTree returns a folder with the files of this tree, committed or not.
func currentTree(ctx context.Context) string {
	GinkgoHelper()
	return unpack(ctx, `git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -`)
}

// unpack returns a folder with the files of a tar archive, which a command of the shell writes.
func unpack(ctx context.Context, command string, args ...string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	script := `set -eo pipefail; cd "$0"; ` + command + ` | tar -xf - -C "$1"`
	_, err := run(ctx, "", "bash", append([]string{"-c", script, repository(), folder}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return folder
}

// makeRelease releases a tree by its own tools, and pushes the images. The registry has copies
// of the images of other projects. Both releases share nothing but Go's cache.
func makeRelease(ctx context.Context, registry, tree string, former *release) release {
	GinkgoHelper()
	made := release{version: versionOf(tree), folder: GinkgoT().TempDir()}
	if former != nil {
		made.version = addUpgrade(ctx, tree, *former)
	}
	pushOperands(registry, tree)
	_, err := run(ctx, "", "bash", "-c", `cd "$0/tools" && GOWORK=off go run ./images release --root "$0" --registry "$1" --mirror "$1" --version "$2" --output "$3" \
		--platforms "linux/$4" --push`, tree, registry, made.version, made.folder, runtime.GOARCH)
	Expect(err).NotTo(HaveOccurred())
	return made
}

func versionOf(tree string) string {
	GinkgoHelper()
	var settings struct{ Version string }
	readYAML(filepath.Join(tree, "config", "packaging.yaml"), &settings)
	return settings.Version
}

// addUpgrade adds the catalog of a former release to a tree, and returns the version of the
// tree. If this is still the former version, it adds the next one as a maintainer does.
func addUpgrade(ctx context.Context, tree string, former release) (version string) {
	GinkgoHelper()
	_, err := run(ctx, "", "cp", "-r", filepath.Join(former.folder, "catalog", "release"), filepath.Join(tree, "catalog"))
	Expect(err).NotTo(HaveOccurred())
	if version = versionOf(tree); version != former.version {
		return version
	}
	var major, minor int
	_, err = fmt.Sscanf(version, "%d.%d.", &major, &minor)
	Expect(err).NotTo(HaveOccurred())
	version = fmt.Sprintf("%d.%d.0", major, minor+1)
	addVersion(filepath.Join(tree, "catalog", "template.yaml"), former.version, version)
	return version
}

// addVersion appends a version to the upgrade graph.
func addVersion(template, former, version string) {
	GinkgoHelper()
	content, err := os.ReadFile(template)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(ContainSubstring("- name: PACKAGE.v" + former + "\n"))
	content = fmt.Appendf(content, "- name: PACKAGE.v%s\n  replaces: PACKAGE.v%s\n", version, former)
	Expect(os.WriteFile(template, content, 0o600)).To(Succeed())
}
