package remote_test

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
	"sync/atomic"
	"syscall"
	"testing"

	"asterism.dev/lib/registration/remote"
)

func TestNamesWithSpecialCharactersAreRefused(t *testing.T) {
	for _, name := range []string{"demo_api", "demo-2_cell1", "0", strings.Repeat("x", 64)} {
		if err := remote.CheckName("database", name, 64); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "Demo", "demo`", "a/b", "a%2Fb", "a b", "a\x00", "a\n", "..", "_a", "-a", "é", "a'b", `a\b`, "a?b", "a#b", strings.Repeat("x", 65),
	} {
		if err := remote.CheckName("database", name, 64); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestMarkNamesClusterNamespaceAndResource(t *testing.T) {
	mark := remote.NewMark("6f2c", "openstack", "demo")
	if mark != "asterism 6f2c/openstack/demo" || !remote.IsMark(string(mark)) || remote.IsMark("created manually") {
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
		if got := (&remote.Unreachable{Address: "db:1", Err: err}).Error(); got != "db:1: "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestMain allows servers on the loopback interface.
func TestMain(m *testing.M) {
	remote.AllowAnyServer = true
	m.Run()
}

// request sends one request to address with a transport for server, and reads the whole
// answer.
func request(t *testing.T, server, address string) error {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := remote.NewTransport(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(get)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func mustFail(t *testing.T, err error, with string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), with) {
		t.Errorf("got %v, want an error with %q", err, with)
	}
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	server := serve(t, http.RedirectHandler(elsewhere, http.StatusFound).ServeHTTP)
	mustFail(t, request(t, server, server), elsewhere)
}

// TestRequestToAnotherServerIsRefused: the link to the next page of a list may name any
// server.
func TestRequestToAnotherServerIsRefused(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("another server got a request") })
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	if err := request(t, server, server+"/v3/users?marker=2"); err != nil {
		t.Error(err)
	}
	mustFail(t, request(t, server, elsewhere), "refers to another server")
	mustFail(t, request(t, server, strings.Replace(server, "http:", "https:", 1)), "refers to another server")
}

func TestEndlessAnswerIsAnError(t *testing.T) {
	var sent atomic.Int64
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			n, err := w.Write(make([]byte, 64<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	mustFail(t, request(t, server, server), "more data than the operator accepts")
	if got := sent.Load(); got > 16<<20 {
		t.Errorf("the server could send %d bytes", got)
	}
}

// TestEndlessConnectionIsAnError applies to every protocol.
func TestEndlessConnectionIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		for err == nil {
			_, err = conn.Write(make([]byte, 64<<10))
		}
	}()
	conn, err := remote.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read, err := io.Copy(io.Discard, conn)
	mustFail(t, err, "more data than the operator accepts")
	if read != 1<<20 {
		t.Errorf("%d bytes were read", read)
	}
}

// TestLocalAddressesAreRefused: they belong to the operator's pod, or to the metadata
// service of a cloud.
func TestLocalAddressesAreRefused(t *testing.T) {
	remote.AllowAnyServer = false
	defer func() { remote.AllowAnyServer = true }()
	for _, address := range []string{"127.0.0.1:1", "localhost:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "169.254.169.254:80", "[fe80::1%lo]:80", "0.0.0.0:80", "168.63.129.16:80", "[fd00:ec2::254]:80", "[fd20:ce::254]:80", "[fd00:c1::a9fe:a9fe]:80", "[64:ff9b::7f00:1]:80", "[fd00:ec2::23]:80", "[64:ff9b:1::a9fe:a9fe]:80", "[2002:a9fe:a9fe::1]:80", "[2001:0:1::1]:80"} {
		conn, err := remote.Dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		mustFail(t, &remote.Unreachable{Address: address, Err: err}, "has the local address")
	}
}

func TestQuotesAreOneShortLine(t *testing.T) {
	for message, want := range map[string]string{
		"no":                                  "no",
		" two\tlines\nof text":                "two lines",
		strings.Repeat("é ", 150):             strings.Repeat("é ", 100) + "…",
		strings.Repeat("x", 195) + " c4n4ry!": strings.Repeat("x", 195) + " …",
		strings.Repeat("x", 201):              "…",
		"cut\xffshort\x1b[31m\u009b\u202e":    "cutshort [31m  ",
	} {
		if got := remote.Quote(message); got != want {
			t.Errorf("%q became %q", message, got)
		}
	}
}

func TestGarbageInTheCABundleIsReported(t *testing.T) {
	if _, err := remote.TLSConfig([]byte("not PEM")); err == nil {
		t.Error("accepted")
	}
}
