package packages

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"asterism.dev/test/cloud"
)

// The helpers that test/e2e uses as well.
var (
	repository = cloud.Repository
	run        = cloud.Run
	kubectl    = cloud.Kubectl
)

// program returns the path of a program that the Makefile builds for this suite.
func program(name string) string { return filepath.Join(os.Getenv("PROGRAMS"), name) }

// apply applies manifests server-side.
func apply(ctx context.Context, manifests string, options ...string) {
	GinkgoHelper()
	Expect(cloud.Apply(ctx, manifests, options...)).To(Succeed())
}

// makeTarget runs a target of the repository's Makefile, and shows its output.
func makeTarget(ctx context.Context, args ...string) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "-C", repository()}, args...)...)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	command.Env = os.Environ()
	Expect(command.Run()).To(Succeed(), "make %s", strings.Join(args, " "))
}

// readYAML reads the fields of a file that a struct has.
func readYAML(path string, into any) {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(content, into)).To(Succeed(), path)
}

// object is an object of the cluster.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace, UID string
		Generation           int
	}
	Spec   map[string]any
	Status map[string]any
}

// list returns the objects of a resource, or of several, in a namespace.
func list(ctx context.Context, resource, namespace string) []object {
	GinkgoHelper()
	var all struct{ Items []object }
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", resource, "--namespace", namespace, "--output=json")), &all)).To(Succeed())
	return all.Items
}

// podUIDs returns the UIDs of the pods of a namespace, by name.
func podUIDs(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, o := range list(ctx, "pods", namespace) {
		found[o.Metadata.Name] = o.Metadata.UID
	}
	return found
}
