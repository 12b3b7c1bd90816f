package cloud

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Requests are the GET requests of a load.
type Requests struct {
	// URLs are requested in turn.
	URLs []string
	// Token of Keystone. Without one, no request is authenticated.
	Token string
	// Contains is a text that every response must contain.
	Contains string
	// PerSecond is the rate.
	PerSecond int
	// TLS verifies the servers of URLs with https. Default: by the system's authorities.
	TLS *tls.Config
}

// Load sends requests at a steady rate, whether or not earlier ones are answered.
type Load struct {
	requests Requests
	client   *http.Client
	began    time.Time
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	answered int
	failures []string
	latest   map[string]time.Time     // answers, by URL
	longest  map[string]time.Duration // gaps, by URL
}

// StartLoad sends requests until Stop is called or ctx ends. Each uses a connection of its own,
// because a kept connection stays at its pod while a Service changes.
func StartLoad(ctx context.Context, requests Requests) *Load {
	l := &Load{
		requests: requests, began: time.Now(), latest: map[string]time.Time{}, longest: map[string]time.Duration{},
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: requests.TLS}, Timeout: time.Minute},
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.running.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(requests.PerSecond))
		defer ticker.Stop()
		for number := 0; ; number++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				l.running.Go(func() { l.send(number) })
			}
		}
	})
	return l
}

func (l *Load) send(number int) {
	url := l.requests.URLs[number%len(l.requests.URLs)]
	failure := l.get(url)
	l.mu.Lock()
	defer l.mu.Unlock()
	if failure != nil {
		l.failures = append(l.failures, fmt.Sprintf("%s request %d, %s: %v", time.Now().Format(time.TimeOnly), number, url, failure))
		return
	}
	l.answer(url, time.Now())
}

func (l *Load) answer(url string, at time.Time) {
	l.answered++
	l.longest[url] = l.gap(url, at)
	l.latest[url] = at
}

func (l *Load) gap(url string, now time.Time) time.Duration {
	since, answered := l.latest[url]
	if !answered {
		since = l.began
	}
	return max(l.longest[url], now.Sub(since))
}

// get returns an error unless the answer is 200 with the text. The end of the load does not
// cancel a request: it gets its answer.
func (l *Load) get(url string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if l.requests.Token != "" {
		request.Header.Set("X-Auth-Token", l.requests.Token)
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), l.requests.Contains) {
		return fmt.Errorf("the answer lacks %s: %s", l.requests.Contains, body)
	}
	return nil
}

// Answered returns the number of answers so far.
func (l *Load) Answered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// Gap returns the longest time without an answer of a URL so far: between two answers, since the
// last one, or before the first.
func (l *Load) Gap(url string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gap(url, time.Now())
}

// Stop ends the load, waits for the answers, and returns their number and the failures.
func (l *Load) Stop() (answered int, failures []string) {
	l.cancel()
	l.running.Wait()
	return l.answered, l.failures
}

// Floor is the number of answers that a load must have had to count: half of those at its rate,
// because a busy machine sends fewer requests.
func (l *Load) Floor() int {
	return int(time.Since(l.began).Seconds() * float64(l.requests.PerSecond) / 2)
}
