package registration_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"asterism.dev/operators/nova/internal/registration"
)

func TestNamesThatCouldMeanSomethingElseAreRefused(t *testing.T) {
	for _, name := range []string{"demo_api", "demo-2_cell1", "0", strings.Repeat("x", 64)} {
		if err := registration.CheckName("database", name, 64); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "Demo", "demo`", "a/b", "a%2Fb", "a b", "a\x00", "a\n", "..", "_a", "-a", "é", "a'b", `a\b`, "a?b", "a#b", strings.Repeat("x", 65),
	} {
		if err := registration.CheckName("database", name, 64); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestMarkNamesClusterNamespaceAndResource(t *testing.T) {
	mark := registration.NewMark("6f2c", "openstack", "demo")
	if mark != "asterism 6f2c/openstack/demo" || !registration.IsMark(string(mark)) || registration.IsMark("made by hand") {
		t.Errorf("mark %q", mark)
	}
}

func TestCauseIsShortAndStable(t *testing.T) {
	get := func(err error) error { return &url.Error{Op: "Get", URL: "http://db:1/x", Err: err} }
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		"no answer: timed out":             get(context.DeadlineExceeded),
		"no connection: timed out":         get(dial(os.ErrDeadlineExceeded)),
		"connection refused":               get(dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))),
		"host name db: no such host":       dial(&net.DNSError{Err: "no such host", Name: "db", Server: "10.0.0.10:53"}),
		"the server closed the connection": get(io.EOF),
		"answered with a redirect":         get(errors.New("answered with a redirect")),
	} {
		if got := (&registration.Unreachable{Address: "db:1", Err: err}).Error(); got != "db:1: "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPasswordIsNotCarriedToAnotherHost(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	transport, err := registration.NewTransport(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("the error does not name the new address: %v", err)
	}
}

func TestGarbageInTheCABundleIsReported(t *testing.T) {
	if _, err := registration.TLSConfig([]byte("not PEM")); err == nil {
		t.Error("accepted")
	}
}
