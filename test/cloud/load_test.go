package cloud

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// startAPI serves two paths: an open one, and one for the holder of the token, with a list that
// every tenth answer lacks.
func startAPI(t *testing.T) (url string) {
	t.Helper()
	var lists atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/":
		case r.Header.Get("X-Auth-Token") != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case lists.Add(1)%10 == 0:
			_, _ = fmt.Fprint(w, `{"servers": []}`)
		default:
			_, _ = fmt.Fprint(w, `{"servers": ["demo"]}`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestLoad lets each load run until it has some answers or failures.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		paths    []string
		token    string
		contains string
		failure  string // empty if no request fails
		mixed    bool   // some are answered, and some fail
	}{
		"open":            {paths: []string{"/"}},
		"with a token":    {paths: []string{"/", "/servers"}, token: "secret"},
		"without a token": {paths: []string{"/", "/servers"}, failure: "status 401", mixed: true},
		"wrong token":     {paths: []string{"/servers"}, token: "other", failure: "status 401"},
		"another content": {paths: []string{"/servers"}, token: "secret", contains: `"demo"`, failure: `the answer lacks "demo": {"servers": []}`, mixed: true},
	} {
		t.Run(name, func(t *testing.T) {
			requests := Requests{Token: c.token, Contains: c.contains, PerSecond: 200}
			address := startAPI(t)
			for _, path := range c.paths {
				requests.URLs = append(requests.URLs, address+path)
			}
			load := StartLoad(t.Context(), requests)
			await(t, load, 40)
			answered, failures := load.Stop()
			if (answered > 0) != (c.failure == "" || c.mixed) || (len(failures) > 0) != (c.failure != "") {
				t.Errorf("%d answered, failed: %s", answered, failures)
			}
			for _, failure := range failures {
				if !strings.HasSuffix(failure, c.failure) && !strings.Contains(failure, c.failure+" ") {
					t.Errorf("%q is not %q", failure, c.failure)
				}
			}
		})
	}
}

func TestLoadOfAnUnreachableServerFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	load := StartLoad(t.Context(), Requests{URLs: []string{server.URL}, PerSecond: 200})
	await(t, load, 10)
	if answered, failures := load.Stop(); answered != 0 || !strings.Contains(failures[0], "refused") {
		t.Errorf("%d answered, failed: %s", answered, failures)
	}
}

// TestRequestsDoNotWaitForEachOther answers none until several are open.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	var open atomic.Int64
	together := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if open.Add(1) == 5 {
			close(together)
		}
		select {
		case <-together:
		case <-time.After(50 * time.Second): // less than a load waits
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	}))
	defer server.Close()
	load := StartLoad(t.Context(), Requests{URLs: []string{server.URL}, PerSecond: 200})
	await(t, load, 5)
	if answered, failures := load.Stop(); answered < 5 || len(failures) > 0 {
		t.Errorf("%d answered, failed: %s", answered, failures)
	}
}

func TestGapIsTheLongestTimeWithoutAnAnswer(t *testing.T) {
	began := time.Now()
	for name, c := range map[string]struct {
		answers []time.Duration // after the begin
		gap     time.Duration   // ten seconds after the begin
	}{
		"never answered":   {gap: 10 * time.Second},
		"before the first": {answers: []time.Duration{6 * time.Second, 9 * time.Second}, gap: 6 * time.Second},
		"between two":      {answers: []time.Duration{time.Second, 8 * time.Second, 9 * time.Second}, gap: 7 * time.Second},
		"since the last":   {answers: []time.Duration{time.Second, 2 * time.Second}, gap: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			load := &Load{began: began, latest: map[string]time.Time{}, longest: map[string]time.Duration{}}
			load.answer("another", began.Add(5*time.Second))
			for _, after := range c.answers {
				load.answer("url", began.Add(after))
			}
			if gap := load.gap("url", began.Add(10*time.Second)); gap != c.gap {
				t.Errorf("got %s, want %s", gap, c.gap)
			}
		})
	}
}

func TestAnsweredCountsSuccesses(t *testing.T) {
	load := StartLoad(t.Context(), Requests{URLs: []string{startAPI(t) + "/"}, PerSecond: 200})
	await(t, load, 10)
	if answered, gap := load.Answered(), load.Gap("never requested"); answered < 10 || gap <= 0 {
		t.Errorf("%d answered, and %s without an answer of an URL that nobody requests", answered, gap)
	}
	load.Stop()
}

func TestFloorIsHalfOfTheRate(t *testing.T) {
	load := &Load{requests: Requests{PerSecond: 10}, began: time.Now().Add(-time.Minute)}
	if floor := load.Floor(); floor < 300 || floor > 400 {
		t.Errorf("got %d after a minute at 10 requests a second", floor)
	}
}

// await waits until a number of requests has ended.
func await(t *testing.T, load *Load, ended int) {
	t.Helper()
	deadline, ticker := time.After(3*time.Minute), time.NewTicker(10*time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-deadline:
			t.Fatalf("fewer than %d requests have ended", ended)
		case <-ticker.C:
		}
		load.mu.Lock()
		now := load.answered + len(load.failures)
		load.mu.Unlock()
		if now >= ended {
			return
		}
	}
}
