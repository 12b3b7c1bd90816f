package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	resync = 5 * time.Second
	atRest = 25 * time.Second
)

// metricsAccounts are metrics-reader, which may read metrics, and metrics-stranger, which may not.
const metricsAccounts = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-stranger}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-metrics-reader}
subjects: [{kind: ServiceAccount, name: metrics-reader, namespace: e2e-operators}]
`

// Operators that have nothing to do are watched after all other specs that run in parallel:
// starved of processors, a probe that comes late changes a status, and an operator writes it.
var _ = Describe("The demo at rest", Serial, Ordered, func() {
	It("is not changed by a second `make demo`", func(ctx SpecContext) {
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		awaitQuiet(ctx, demoOperators...)
		before, from := uidsOf(ctx, demoNamespace), auditNow()
		_, err := run(ctx, "", "make", "--no-print-directory", "-C", repository(), "demo")
		Expect(err).NotTo(HaveOccurred())
		Expect(uidsOf(ctx, demoNamespace)).To(Equal(before))
		Expect(texts(writes(by(auditSince(from), demoOperators...)))).To(BeEmpty())
	}, SpecTimeout(12*time.Minute))

	It("writes nothing at rest, although every object is reconciled repeatedly", func(ctx SpecContext) {
		apply(ctx, sharedOperators, metricsAccounts)
		setOperatorArguments(ctx, `["--sync-period=`+resync.String()+`"]`)
		DeferCleanup(func(ctx SpecContext) { setOperatorArguments(ctx, "[]") })
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		awaitQuiet(ctx, demoOperators...)

		from, before := auditNow(), reconciles(ctx, demoOperators...)
		Consistently(func() []string { return texts(writes(by(auditSince(from), demoOperators...))) }).
			WithContext(ctx).WithTimeout(atRest).WithPolling(5 * time.Second).Should(BeEmpty())

		after := reconciles(ctx, demoOperators...)
		Expect(after).To(HaveLen(len(groups)+1), "a controller of a kind, or that of the namespaces' rights, is not in the metrics: %v", after)
		for controller, count := range after {
			if controller == "nova-novncproxy" || controller == "shared-file-system" { // the demo has none
				continue
			}
			Expect(count-before[controller]).To(BeNumerically(">=", int(atRest/resync)-2), "%s did not reconcile again", controller)
		}
		for _, r := range by(auditSince(from), demoOperators...) {
			Expect(r.Verb).To(Equal("watch"), "%s at rest", r)
		}
	}, SpecTimeout(10*time.Minute))

	It("refuses requests for metrics without the right to read them", func(ctx SpecContext) {
		apply(ctx, sharedOperators, metricsAccounts)
		for _, url := range metricsURLs(ctx, demoOperators...) {
			_, status := metrics(ctx, url, "")
			Expect(status).To(Equal(http.StatusUnauthorized))
			_, status = metrics(ctx, url, tokenOf(ctx, "metrics-stranger"))
			Expect(status).To(Equal(http.StatusForbidden))
		}
	})
})

// setOperatorArguments restarts the demo's operators with arguments, and waits until they run.
func setOperatorArguments(ctx context.Context, arguments string) {
	GinkgoHelper()
	for _, operator := range operators(ctx, demoOperators...) {
		kubectl(ctx, "patch", "deployment", operator.Name, "--namespace="+operator.Namespace, "--type=json", "--field-manager="+tester,
			`--patch=[{"op":"add","path":"/spec/template/spec/containers/0/args","value":`+arguments+`}]`)
	}
	awaitOperators(ctx, demoOperators...)
}

// awaitQuiet waits until the operators in some namespaces send no request but watches, which
// end and begin again at rest, for 20 s: the time that a new operator needs to become leader.
func awaitQuiet(ctx context.Context, namespaces ...string) {
	GinkgoHelper()
	const quiet = 20 * time.Second
	var since time.Time
	position := auditNow()
	Eventually(func(g Gomega) {
		var news []request
		news, position = auditFrom(position)
		isWatch := func(r request) bool { return r.Verb == "watch" }
		work := slices.DeleteFunc(by(news, namespaces...), isWatch)
		if len(work) > 0 || since.IsZero() {
			since = time.Now()
		}
		g.Expect(time.Since(since)).To(BeNumerically(">", quiet), "last: %v", texts(work))
	}).WithContext(ctx).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
}

var reconcileTotal = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="([^"]+)",result="[a-z_]+"\} (\S+)$`)

// reconciles returns the number of passes of every controller in some namespaces.
func reconciles(ctx context.Context, namespaces ...string) map[string]int {
	GinkgoHelper()
	counts, token := map[string]int{}, tokenOf(ctx, "metrics-reader")
	for _, url := range metricsURLs(ctx, namespaces...) {
		text, status := metrics(ctx, url, token)
		Expect(status).To(Equal(http.StatusOK))
		for _, found := range reconcileTotal.FindAllStringSubmatch(text, -1) {
			count, err := strconv.ParseFloat(found[2], 64)
			Expect(err).NotTo(HaveOccurred())
			counts[found[1]] += int(count)
		}
	}
	return counts
}

// metricsURLs returns the metrics URLs of the operators in some namespaces, without pods
// that are being deleted.
func metricsURLs(ctx context.Context, namespaces ...string) []string {
	GinkgoHelper()
	var urls []string
	for _, namespace := range namespaces {
		for _, pod := range podsOf(ctx, namespace, operatorLabel) {
			if pod.DeletionTimestamp == nil {
				urls = append(urls, fmt.Sprintf("https://%s:8443/metrics", pod.Status.PodIP))
			}
		}
	}
	Expect(urls).NotTo(BeEmpty())
	return urls
}

func tokenOf(ctx context.Context, account string) string {
	GinkgoHelper()
	token, err := typed.CoreV1().ServiceAccounts(sharedOperators).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

func metrics(ctx context.Context, url, token string) (text string, status int) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The operators sign their own certificates unless a certificate is configured.
	selfSigned := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // see above
	var response *http.Response
	Eventually(func() (err error) { // an operator may just have started
		response, err = selfSigned.Do(request)
		return err
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(body)), response.StatusCode
}
