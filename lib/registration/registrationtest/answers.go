package registrationtest

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// Answer is the answer of a broken server to every request.
type Answer struct {
	Status int // 0: the server closes the connection
	Body   string
	Check  func(error) bool
}

// handler returns a handler that sends the answer.
func (a Answer) handler(t testing.TB) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		if a.Status == 0 {
			HangUp(t, w)
			return
		}
		w.Header().Set("Location", "http://elsewhere.example/")
		if strings.HasPrefix(a.Body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
	}
}

// MustReportAnswers checks the error of every operation of a client for each answer, and
// for the answers that any HTTP server may give. connect returns the errors of the
// operations at a server with this handler, and the address of the server.
func MustReportAnswers(t *testing.T, answers map[string]Answer, password config.Password, connect func(*testing.T, http.HandlerFunc) (operations map[string]error, address string)) {
	answers["503 of a proxy"] = Answer{503, "<html>no backend</html>", IsUnreachable}
	answers["200 of a website"] = Answer{200, "<html>hello</html>", IsUntyped}
	answers["redirect"] = Answer{302, "", IsUnreachable}
	answers["nothing"] = Answer{0, "", IsUnreachable}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			operations, address := connect(t, answer.handler(t))
			if len(operations) == 0 {
				t.Error("no operation was tried")
			}
			for operation, err := range operations {
				if err == nil || !answer.Check(err) || !strings.Contains(err.Error(), address) {
					t.Errorf("%s: got %T %v", operation, err, err)
				}
				MustNotTell(t, err, password)
			}
		})
	}
}

// IsUnreachable returns whether an error is of type Unreachable.
func IsUnreachable(err error) bool {
	_, ok := errors.AsType[*remote.Unreachable](err)
	return ok
}

// IsDenied checks that an error is of type Denied, with the account and the server's
// reason.
func IsDenied(account, reason string) func(error) bool {
	return func(err error) bool {
		found, ok := errors.AsType[*remote.Denied](err)
		return ok && found.Account == account && strings.Contains(found.Reason, reason)
	}
}

// IsUntyped returns whether an error is neither Denied nor Unreachable.
func IsUntyped(err error) bool {
	_, denied := errors.AsType[*remote.Denied](err)
	return !denied && !IsUnreachable(err)
}

// MustReportUnreachable checks the errors of connect for servers that cannot be reached
// for different causes.
func MustReportUnreachable(t *testing.T, port string, password config.Password, connect func(address string, withTLS bool) error) {
	tlsServer := httptest.NewUnstartedServer(nil)
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	const certificate = "certificate refused"
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		// the TLS handshake with a silent server has a shorter timeout than a request
		MustTryOnce(t, "no answer: timed out", password, func(address string) error { return connect(address, false) })
	})
	for cause, address := range map[string]string{
		"connection refused":       RefusedAddress(t),
		"no connection: timed out": FullAddress(t),
		certificate:                tlsServer.Listener.Addr().String(),
		"host name":                "nobody.invalid:" + port,
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			attempt := func() error { return connect(address, cause == certificate) }
			if cause == certificate {
				MustBeUnreachable(t, Answered(attempt), address, cause, password)
				return
			}
			MustBeUnreachable(t, attempt(), address, cause, password)
		})
	}
}
