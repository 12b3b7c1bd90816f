package packages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// release is a version whose images are in the registry.
type release struct {
	version string
	folder  string
}

// makeRelease releases a version from a copy of the repository, and pushes the images. Like
// a maintainer, it adds the version to the upgrade graph, beside the catalog of the
// earlier release.
func makeRelease(ctx context.Context, registry, version string, earlier *release) release {
	GinkgoHelper()
	root, made := GinkgoT().TempDir(), release{version: version, folder: GinkgoT().TempDir()}
	_, err := run(ctx, "", "bash", "-c", `cd "$0" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$1"`, repository(), root)
	Expect(err).NotTo(HaveOccurred())
	if earlier != nil {
		_, err := run(ctx, "", "cp", "-r", filepath.Join(earlier.folder, "catalog", "release"), filepath.Join(root, "catalog"))
		Expect(err).NotTo(HaveOccurred())
		addVersion(filepath.Join(root, "catalog", "template.yaml"), earlier.version, version)
	}
	_, err = run(ctx, "", "bash", "-c", `cd "$0/tools" && GOWORK=off go run ./images release --root "$0" --registry "$1" --mirror "$1" --version "$2" --output "$3" --push`,
		root, registry, version, made.folder)
	Expect(err).NotTo(HaveOccurred())
	return made
}

// addVersion appends a version to the upgrade graph.
func addVersion(template, earlier, version string) {
	GinkgoHelper()
	content, err := os.ReadFile(template)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(ContainSubstring("- name: PACKAGE.v" + earlier + "\n"))
	content = fmt.Appendf(content, "- name: PACKAGE.v%s\n  replaces: PACKAGE.v%s\n", version, earlier)
	Expect(os.WriteFile(template, content, 0o600)).To(Succeed())
}
