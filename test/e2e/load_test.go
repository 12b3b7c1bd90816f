package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// authenticatedOf is the number of requests of which one has a token.
const authenticatedOf = 10

// steadyLoad sends requests to an API or a metadata service at a steady rate, whether or not
// earlier ones are answered.
type steadyLoad struct {
	url, token string
	client     *http.Client
	cancel     context.CancelFunc
	requests   sync.WaitGroup

	mu       sync.Mutex
	answered int
	failures []string
}

// startLoad sends a number of requests per second to a Service until stop is called. Without a
// token, none is authenticated.
func startLoad(ctx context.Context, address, token string, perSecond int) *steadyLoad {
	GinkgoHelper()
	l := &steadyLoad{url: clusterAddress(ctx, address), token: token, client: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute,
	}}
	var sending context.Context
	sending, l.cancel = context.WithCancel(context.Background())
	DeferCleanup(l.cancel)
	l.requests.Add(1)
	go func() {
		defer l.requests.Done()
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for number := 0; ; number++ {
			select {
			case <-sending.Done():
				return
			case <-ticker.C:
				l.requests.Add(1)
				go l.send(number)
			}
		}
	}()
	return l
}

func (l *steadyLoad) send(number int) {
	defer l.requests.Done()
	failure := l.request(number)
	l.mu.Lock()
	defer l.mu.Unlock()
	if failure != nil {
		l.failures = append(l.failures, fmt.Sprintf("%s request %d: %v", time.Now().Format(time.TimeOnly), number, failure))
		return
	}
	l.answered++
}

// request returns an error unless the API answers with 200.
func (l *steadyLoad) request(number int) error {
	path := "/"
	if l.token != "" && number%authenticatedOf == 0 {
		path = "/v2.1/flavors"
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, l.url+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", l.token)
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return nil
}

// stop ends the load, waits for the answers, and returns their number and the failures.
func (l *steadyLoad) stop() (answered int, failures []string) {
	l.cancel()
	l.requests.Wait()
	return l.answered, l.failures
}

// clusterAddress replaces the name of a Service in a URL by its address.
func clusterAddress(ctx context.Context, address string) string {
	GinkgoHelper()
	parsed, err := url.Parse(address)
	Expect(err).NotTo(HaveOccurred())
	host := strings.Split(parsed.Hostname(), ".")
	var service corev1.Service
	Expect(k8s.Get(ctx, types.NamespacedName{Namespace: host[1], Name: host[0]}, &service)).To(Succeed())
	parsed.Host = net.JoinHostPort(service.Spec.ClusterIP, parsed.Port())
	return parsed.String()
}
