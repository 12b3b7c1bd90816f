package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These specs run kubectl asterism, built as users build it, on the demo's ControlPlane.
var _ = Describe("kubectl asterism", Ordered, func() {
	var program string

	// asterism runs the program in the demo's namespace.
	asterism := func(ctx context.Context, args ...string) (string, error) {
		return run(ctx, "", program, append(args, "--namespace="+demoNamespace)...)
	}

	BeforeAll(func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		_, err := run(ctx, "", "make", "--no-print-directory", "-C", repository(), "cli", "BIN="+folder)
		Expect(err).NotTo(HaveOccurred())
		program = filepath.Join(folder, "kubectl-asterism")
	})

	It("shows a Ready ControlPlane, and ends with 0", func(ctx SpecContext) {
		// Specs of other processes restart services of the demo.
		Eventually(func(g Gomega) {
			out, err := asterism(ctx, "status", "controlplane/demo")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(MatchRegexp(`(?m)^ControlPlane/demo +True +True `))
			g.Expect(out).To(MatchRegexp(`(?m)─NovaCell/demo-cell1 +True `))
			g.Expect(out).NotTo(ContainSubstring("cause:"))
		}).WithContext(ctx).Should(Succeed())
	})

	It("shows the configuration of a pod with its files, and without secrets", func(ctx SpecContext) {
		out, err := asterism(ctx, "config", "view", "demo-superconductor-0")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(`(?m)^transport_url = \*\*\*  # 50-connections\.conf$`))
		Expect(out).To(MatchRegexp(`(?m)^connection = \*\*\*  # 50-connections\.conf$`))
		Expect(out).To(MatchRegexp(`(?m)^\S+ = .*  # 10-defaults\.conf$`))
		expectNoPassword(ctx, out)
	})

	It("shows the options that a snippet changes, and those that Nova does not have", func(ctx SpecContext) {
		snippet := filepath.Join(GinkgoT().TempDir(), "snippet.conf")
		Expect(os.WriteFile(snippet, []byte("[filter_scheduler]\nhost_subset_size = 7\nhost_subset_sizes = 7\n"), 0o600)).To(Succeed())
		out, err := run(ctx, "", "sh", "-c", `"$0" "$@" 2>&1`, program, "config", "diff", "novascheduler/demo-scheduler", "--snippet", snippet, "--namespace="+demoNamespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("warning: 90-custom.conf: this image has no option [filter_scheduler] host_subset_sizes: did you mean host_subset_size?"))
		Expect(out).To(MatchRegexp(`(?m)^\[filter_scheduler\]\n(- host_subset_size = .*\n)?\+ host_subset_size = 7  # 90-custom\.conf$`))
		expectNoPassword(ctx, out)
	})

	It("shows the logs and the events of a cell without passwords", func(ctx SpecContext) {
		logs, err := asterism(ctx, "logs", "novacell/demo-cell1", "--tail", "20")
		Expect(err).NotTo(HaveOccurred())
		Expect(logs).To(And(MatchRegexp(`(?m)^\[demo-cell1-conductor-0/nova-conductor\] .`), MatchRegexp(`(?m)^\[demo-cell1-fake-0/nova-compute\] .`)))
		Expect(logs).NotTo(ContainSubstring("demo-superconductor"))
		expectNoPassword(ctx, logs)
		events, err := asterism(ctx, "events")
		Expect(err).NotTo(HaveOccurred())
		Expect(events).To(MatchRegexp(`(?m)^\S+.* Normal +\S+ +(ControlPlane|Nova\w+|Pod)/demo`))
		expectNoPassword(ctx, events)
	})

	It("collects logs in a report without passwords", func(ctx SpecContext) {
		archive := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
		_, err := asterism(ctx, "report", "--file", archive)
		Expect(err).NotTo(HaveOccurred())
		names, err := run(ctx, "", "tar", "--list", "--file="+archive)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(names)).To(ContainElements(
			MatchRegexp(`^asterism-report/namespaces/openstack/.*demo-superconductor-0.*nova-conductor.*log`),
			MatchRegexp(`^asterism-report/namespaces/asterism-system/.*asterism-nova-operator-.*log`),
			Equal("asterism-report/status.txt"),
		))
		text, err := run(ctx, "", "tar", "--extract", "--to-stdout", "--file="+archive)
		Expect(err).NotTo(HaveOccurred())
		expectNoPassword(ctx, text)
	})
})

// secretKeys are the keys of Secrets whose values are secret.
var secretKeys = regexp.MustCompile(`(?i)password|secret|\.conf$|key$|token`)

// expectNoPassword expects no password of the demo's namespace in a text.
func expectNoPassword(ctx context.Context, text string) {
	GinkgoHelper()
	var secrets corev1.SecretList
	Expect(k8s.List(ctx, &secrets, client.InNamespace(demoNamespace))).To(Succeed())
	checked := 0
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			// A short value, such as a user's name in a demo, may be an ordinary word.
			if secretKeys.MatchString(key) && len(value) >= 12 {
				checked++
				Expect(strings.Contains(text, string(value))).To(BeFalse(), "the value of key %s of Secret %s", key, secret.Name)
			}
		}
	}
	Expect(checked).To(BeNumerically(">", 5), "the namespace has too few passwords")
}
