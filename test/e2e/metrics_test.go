package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withoutSeries are the metrics without a series until something fails or a Job ends, because an
// operator may have restarted since, and that of certificates, which the demo does not have.
var withoutSeries = []string{"asterism_pass_failures_total", "asterism_jobs_total", "asterism_namespace_failures_total", "asterism_certificate_expiry_timestamp_seconds"}

var _ = Describe("Metrics of the operators", func() {
	It("have every metric of the alerts and the dashboard, and the state of the ControlPlane", func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		apply(ctx, sharedOperators, metricsAccounts)
		used := metricsOfMonitoring()
		Expect(used).NotTo(BeEmpty())
		Eventually(func(g Gomega) { // an operator may just have started
			served := servedMetrics(ctx, demoOperators...)
			for _, name := range used {
				g.Expect(served).To(MatchRegexp(`(?m)^%s\{`, name), "no operator serves %s", name)
			}
			for _, condition := range []string{"Available", "Ready"} {
				g.Expect(served).To(ContainSubstring(`asterism_condition{condition="` + condition + `",kind="ControlPlane",name="demo",namespace="` + demoNamespace + `",status="True"} 1`))
			}
		}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	})
})

// metricsOfMonitoring returns the operators' metrics of the alerts and of the dashboard, without
// those of withoutSeries.
func metricsOfMonitoring() (names []string) {
	GinkgoHelper()
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(repository(), "config", "monitoring", file))
		Expect(err).NotTo(HaveOccurred())
		names = append(names, regexp.MustCompile(`\basterism_\w+`).FindAllString(string(content), -1)...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(withoutSeries, name) })
}

// servedMetrics returns the text of the metrics of all operators in some namespaces.
func servedMetrics(ctx context.Context, namespaces ...string) string {
	GinkgoHelper()
	var all strings.Builder
	token := tokenOf(ctx, "metrics-reader")
	for _, url := range metricsURLs(ctx, namespaces...) {
		text, status := metrics(ctx, url, token)
		Expect(status).To(Equal(http.StatusOK))
		all.WriteString(text + "\n")
	}
	return all.String()
}
