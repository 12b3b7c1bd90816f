package enginetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

const (
	minimalOutput = "--- # ConfigReady\napiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: api\n" +
		"--- # WorkloadReady\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  labels:\n    part: api\n  name: api\nspec:\n  replicas: 1\n  serviceName: api\n" +
		"--- # status\nstatus:\n  replicas: 1\n"
	scaledDifference = "--- ../minimal/out.yaml\n+++ out.yaml\n" +
		"@@ -14,5 +14,5 @@ WorkloadReady: StatefulSet\n   name: api\n spec:\n-  replicas: 1\n+  replicas: 3\n   serviceName: api\n --- # status\n"
)

var (
	scaledOutput  = strings.Replace(minimalOutput, "replicas: 1", "replicas: 3", 1)
	deletedOutput = "# deleted StatefulSet api\n"
)

// cases returns a folder with the golden files of three cases.
func cases(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, recorded := range []struct{ name, output string }{{"minimal", minimalOutput}, {"deleted", deletedOutput}, {"scaled", scaledOutput}} {
		dir := filepath.Join(folder, recorded.name)
		write(t, filepath.Join(dir, "in.yaml"), "")
		gomega.NewWithT(t).Expect(updateGolden(dir, recorded.output)).To(gomega.Succeed())
		gomega.NewWithT(t).Expect(checkGolden(dir, recorded.output)).To(gomega.Succeed())
	}
	return folder
}

func write(t *testing.T, path, content string) {
	t.Helper()
	gomega.NewWithT(t).Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(gomega.Succeed())
	gomega.NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(gomega.Succeed())
}

func TestGoldenFiles(t *testing.T) {
	g, folder := gomega.NewWithT(t), cases(t)
	g.Expect(readFile(folder, "scaled", "out.diff")).To(gomega.Equal(scaledDifference))
	g.Expect(readFile(folder, "deleted", "out.yaml")).To(gomega.Equal(deletedOutput), "its difference is longer")
	files, err := filepath.Glob(filepath.Join(folder, "*", "out.*"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(files).To(gomega.HaveLen(3))

	g.Expect(orphans(folder)).To(gomega.BeEmpty())
	g.Expect(os.Remove(filepath.Join(folder, "deleted", "in.yaml"))).To(gomega.Succeed())
	g.Expect(orphans(folder)).To(gomega.ConsistOf(filepath.Join(folder, "deleted", "out.yaml")))

	g.Expect(updateGolden(filepath.Join(folder, "scaled"), deletedOutput)).To(gomega.Succeed())
	g.Expect(filepath.Join(folder, "scaled", "out.diff")).NotTo(gomega.BeAnExistingFile(), "the stale file")
}

func TestGoldenFilesRefuse(t *testing.T) {
	for name, fault := range map[string]struct {
		change func(folder string)
		output string
		found  string
	}{
		"another line": {
			output: strings.Replace(scaledOutput, "serviceName: api", "serviceName: other", 1),
			found:  "@@ -15,5 +15,5 @@ WorkloadReady: StatefulSet\n spec:\n   replicas: 3\n-  serviceName: api\n+  serviceName: other\n --- # status\n",
		},
		"a line less": {
			output: strings.Replace(scaledOutput, "  replicas: 3\n", "", 1), found: "\n-  replicas: 3\n",
		},
		"another base": {
			change: func(folder string) {
				write(t, filepath.Join(folder, "minimal", "out.yaml"), strings.Replace(minimalOutput, "a: b", "a: c", 1))
			},
			output: scaledOutput, found: "\n-  a: c\n+  a: b\n",
		},
		"a base that is missing": {
			change: func(folder string) { _ = os.Remove(filepath.Join(folder, "minimal", "out.yaml")) },
			output: scaledOutput, found: "\n+  a: b\n",
		},
		"a stale output": {
			change: func(folder string) { write(t, filepath.Join(folder, "scaled", "out.yaml"), scaledOutput) },
			output: scaledOutput, found: "both out.yaml and out.diff",
		},
		"no file": {
			change: func(folder string) { _ = os.Remove(filepath.Join(folder, "scaled", "out.diff")) },
			output: scaledOutput, found: "neither out.yaml nor out.diff",
		},
		"an output in place of a difference": {
			change: func(folder string) {
				_ = os.Remove(filepath.Join(folder, "scaled", "out.diff"))
				write(t, filepath.Join(folder, "scaled", "out.yaml"), scaledOutput)
			},
			output: scaledOutput, found: "the right output in the wrong file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := cases(t)
			if fault.change != nil {
				fault.change(folder)
			}
			gomega.NewWithT(t).Expect(checkGolden(filepath.Join(folder, "scaled"), fault.output)).To(gomega.MatchError(gomega.ContainSubstring(fault.found)))
		})
	}
}
