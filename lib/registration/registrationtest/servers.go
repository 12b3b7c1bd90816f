// Package registrationtest is shared by the tests of the clients that register accounts:
// servers with rare failures, unique names, and passwords that break wrong quoting.
package registrationtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// Env returns an environment variable. It fails the test if the variable is not set.
func Env(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: this test needs a real server, see the top of the test file", name)
	}
	return value
}

// CAFile returns the content of the file that an environment variable names, or nil if the
// variable is not set.
func CAFile(t testing.TB, name string) []byte {
	t.Helper()
	path := os.Getenv(name)
	if path == "" {
		return nil
	}
	ca, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// Context ends with the test, or after four minutes.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Name returns a unique name.
func Name(t testing.TB, suffix string) string {
	t.Helper()
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	return "e2e" + hex.EncodeToString(random) + "_" + suffix
}

// Passwords returns passwords that break wrong quoting, and count random passwords of such
// characters. It logs the seed. No password has a line break.
func Passwords(t testing.TB, count int) []config.Password {
	t.Helper()
	passwords := []config.Password{
		"c4n4ry'\"\\$%@:#?& é", `\`, `'`, `''`, `\'`, `"`, "`", `?`, `%s`, `$$`, ` leading`, `trailing `, `;--`, `/* x */`, "tab\there", "星",
	}
	seed := mathrand.Uint64()
	t.Logf("seed of the random passwords: %d", seed)
	source := mathrand.New(mathrand.NewPCG(seed, 0))
	alphabet := []rune("'\"\\`$%@:#?&;-*=<>()[]{} \taZ9éß星")
	for range count {
		var text strings.Builder
		for range 1 + source.IntN(30) {
			text.WriteRune(alphabet[source.IntN(len(alphabet))])
		}
		passwords = append(passwords, config.Password(text.String()))
	}
	return passwords
}

// RefusedAddress returns an address at which no server listens.
func RefusedAddress(t testing.TB) string {
	t.Helper()
	listener := Listen(t)
	_ = listener.Close()
	return listener.Addr().String()
}

// SilentAddress returns the address of a server that accepts connections and never
// answers.
func SilentAddress(t testing.TB) string {
	t.Helper()
	address, _ := silentServer(t)
	return address
}

// silentServer returns also the number of the connections so far.
func silentServer(t testing.TB) (address string, accepted func() int) {
	t.Helper()
	listener := Listen(t)
	var mu sync.Mutex
	var connections []net.Conn
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			connections = append(connections, connection)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-stopped
		for _, connection := range connections {
			_ = connection.Close()
		}
	})
	return listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(connections)
	}
}

// MustTryOnce checks that a connection to a silent server fails for a cause, and is not tried again.
// An attempt takes seconds: the minute leaves time for a busy machine.
func MustTryOnce(t *testing.T, cause string, password config.Password, connect func(address string) error) {
	t.Helper()
	address, accepted := silentServer(t)
	began := time.Now()
	MustBeUnreachable(t, connect(address), address, cause, password)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a silent server keeps its caller for %s", took)
	}
	if attempts := accepted(); attempts > 1 {
		t.Errorf("%d connections to a silent server, want 1", attempts)
	}
}

// HangUp closes the connection of a request instead of answering it.
func HangUp(t testing.TB, w http.ResponseWriter) {
	t.Helper()
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_ = connection.Close()
}

// FullAddress returns the address of a server whose backlog is full: the kernel drops the
// packets, like a firewall.
func FullAddress(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := errors.Join(
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		syscall.Listen(socket, 0),
	); err != nil {
		t.Fatal(err)
	}
	var connections []net.Conn
	t.Cleanup(func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	})
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for failures := 0; failures < 2; { // the second is not for a pause of this program
		dialer := net.Dialer{Timeout: 300 * time.Millisecond << (2 * failures)}
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			failures++
			continue
		}
		if failures = 0; len(connections) == 100 {
			t.Fatal("the backlog does not fill up")
		}
		connections = append(connections, connection)
	}
	return address
}

// Listen listens on a free port of the loopback interface.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// Writes are the requests with another method than GET, as "METHOD path".
type Writes struct {
	mu   sync.Mutex
	list []string
}

// Take returns the writes since the last Take.
func (w *Writes) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

// RecordWrites starts a proxy for the server at target, and returns the URL of the proxy.
// A request for a token of Keystone is no write.
func RecordWrites(t testing.TB, target string, ca []byte) (string, *Writes) {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	config, err := remote.TLSConfig(ca)
	if err != nil {
		t.Fatal(err)
	}
	writes := &Writes{}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(parsed) },
		Transport: &http.Transport{TLSClientConfig: config},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
			writes.mu.Lock()
			writes.list = append(writes.list, r.Method+" "+r.URL.Path)
			writes.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, writes
}

// MustBeUnreachable checks that a connection to address failed, and that the message has the
// address and the cause, and not the password.
func MustBeUnreachable(t testing.TB, err error, address, cause string, password config.Password) {
	t.Helper()
	unreachable, ok := errors.AsType[*remote.Unreachable](err)
	if !ok || unreachable.Address != address || !strings.Contains(err.Error(), cause) {
		t.Errorf("got %T %v, want Unreachable for %s because of %q", err, err, address, cause)
	}
	MustNotTell(t, err, password)
}

// Answered calls a server of the test until it answers in time, for at most a minute: on a busy
// machine, a client may give up.
func Answered(call func() error) error {
	began := time.Now()
	for {
		err := call()
		if err == nil || !strings.Contains(err.Error(), "timed out") || time.Since(began) > time.Minute {
			return err
		}
	}
}

// MustNotTell checks that no form of the error has the password.
func MustNotTell(t testing.TB, err error, password config.Password) {
	t.Helper()
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		text := fmt.Sprintf("%v %#v", cause, cause)
		for _, spelling := range []string{string(password), url.QueryEscape(string(password)), url.PathEscape(string(password))} {
			if strings.Contains(text, spelling) {
				t.Errorf("the error has the password: %s", text)
			}
		}
	}
}
