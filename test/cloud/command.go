// Package cloud has what the suites of this module share: commands on the cluster of KUBECONFIG,
// and loads on its Services.
package cloud

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Repository returns a path in the repository. A suite runs two folders below its root.
func Repository(parts ...string) string {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return filepath.Join(append([]string{root}, parts...)...)
}

// Run runs a program and returns its standard output.
func Run(ctx context.Context, stdin, program string, args ...string) (string, error) {
	var out, problem bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &problem
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", program, strings.Join(args, " "), err, out.String(), problem.String())
	}
	return out.String(), nil
}

// Kubectl runs kubectl, which must succeed.
func Kubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := Run(ctx, "", "kubectl", args...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return out
}

// Apply applies manifests server-side.
func Apply(ctx context.Context, manifests string, options ...string) error {
	args := append([]string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, options...)
	_, err := Run(ctx, manifests, "kubectl", args...)
	return err
}

// ServiceURL replaces the name of a Service in a URL by its address. This machine is the node,
// so it reaches ClusterIPs, but it does not resolve the names of Services.
func ServiceURL(ctx context.Context, address string) string {
	ginkgo.GinkgoHelper()
	parsed, err := url.Parse(address)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	host := strings.Split(parsed.Hostname(), ".")
	ip := Kubectl(ctx, "get", "service/"+host[0], "--namespace="+host[1], "--output=jsonpath={.spec.clusterIP}")
	parsed.Host = net.JoinHostPort(ip, parsed.Port())
	return parsed.String()
}
