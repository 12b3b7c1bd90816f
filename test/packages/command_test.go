package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// repository returns a path in the repository.
func repository(parts ...string) string {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(append([]string{root}, parts...)...)
}

// run runs a program and returns its standard output.
func run(ctx context.Context, stdin, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Stdin = strings.NewReader(stdin)
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, errors.String())
	}
	return string(out), err
}

// program returns the path of a program that the Makefile builds for this suite.
func program(name string) string { return filepath.Join(os.Getenv("PROGRAMS"), name) }

// kubectl runs kubectl, and fails the spec if kubectl fails.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := run(ctx, "", "kubectl", args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// apply applies manifests server-side.
func apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := run(ctx, manifests, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// makeTarget runs a target of the repository's Makefile, and shows its output.
func makeTarget(ctx context.Context, args ...string) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "-C", repository()}, args...)...)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	command.Env = os.Environ()
	Expect(command.Run()).To(Succeed(), "make %s", strings.Join(args, " "))
}

// object is an object of the cluster.
type object struct {
	Metadata struct {
		Name, Namespace, UID string
		Annotations          map[string]string
	}
	Spec   map[string]any
	Status map[string]any
}

// list returns the objects of a resource in a namespace.
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
