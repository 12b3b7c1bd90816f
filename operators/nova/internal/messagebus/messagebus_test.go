package messagebus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asterism.dev/operators/nova/internal/registration"
	"asterism.dev/operators/nova/internal/registration/registrationtest"
)

const (
	password = registration.Password("c4n4ry'\"\\$%@:#?& é")
	mark     = registration.Mark("asterism c/openstack/demo")
)

func TestServerThatCannotBeReachedIsReportedInTime(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(nil)
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	for cause, address := range map[string]string{
		"connection refused":       registrationtest.RefusedAddress(t),
		"no answer: timed out":     registrationtest.SilentAddress(t),
		"no connection: timed out": registrationtest.FullAddress(t),
		"certificate refused":      tlsServer.Listener.Addr().String(),
		"host name":                "nobody.invalid:15672",
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			// a silent server would end a TLS handshake sooner than a request
			server := Server{Address: address, User: "admin", Password: password, TLS: cause == "certificate refused"}
			_, err := Connect(context.Background(), server)
			registrationtest.MustBeUnreachable(t, err, address, cause, password, start)
		})
	}
}

// broken connects to a management API that answers who is logged in, and
// everything else with handler.
func broken(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/whoami" {
			_, _ = io.WriteString(w, `{"name":"admin","tags":"administrator"}`)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := Connect(t.Context(), Server{Address: server.Listener.Addr().String(), User: "admin", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// every calls each operation of the client.
func every(ctx context.Context, client *Client, name string) map[string]error {
	_, userAbsent := client.UserAbsent(ctx, name, mark)
	_, vhostAbsent := client.VhostAbsent(ctx, name, mark)
	return map[string]error{
		"EnsureVhost": client.EnsureVhost(ctx, name, mark),
		"DeleteVhost": client.DeleteVhost(ctx, name, mark),
		"EnsureUser":  client.EnsureUser(ctx, User{Name: name, Password: password, Vhost: "demo"}, mark),
		"DeleteUser":  client.DeleteUser(ctx, name, mark),
		"UserAbsent":  userAbsent,
		"VhostAbsent": vhostAbsent,
	}
}

func TestBrokenAnswerIsAnErrorOfEveryOperation(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		check  func(error) bool
	}{
		"500":              {500, `{"error":"Internal Server Error","reason":"badmatch"}`, untyped},
		"503 of a proxy":   {503, "<html>no backend</html>", unreachable},
		"200 of a website": {200, "<html>hello</html>", untyped},
		"401":              {401, `{"error":"not_authorised","reason":"Not administrator user"}`, denied},
		"redirect":         {302, "", unreachable},
		"nothing":          {0, "", unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			client := broken(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.status == 0 {
					registrationtest.HangUp(t, w)
					return
				}
				w.Header().Set("Location", "http://elsewhere.example/")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			for operation, err := range every(t.Context(), client, "demo") {
				if err == nil || !test.check(err) || !strings.Contains(err.Error(), client.server.Address) {
					t.Errorf("%s: got %T %v", operation, err, err)
				}
				registrationtest.MustNotTell(t, err, password)
			}
		})
	}
}

func unreachable(err error) bool {
	_, ok := errors.AsType[*registration.Unreachable](err)
	return ok
}

func denied(err error) bool {
	found, ok := errors.AsType[*registration.Denied](err)
	return ok && found.Account == "admin" && found.Reason == "Not administrator user"
}

func untyped(err error) bool { return !unreachable(err) && !denied(err) }

func TestRefusalThatQuotesTheRequestDoesNotTellThePassword(t *testing.T) {
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"bad_request","reason":%q}`, body)
	})
	err := client.EnsureUser(t.Context(), User{Name: "demo", Password: password, Vhost: "demo"}, mark)
	if err == nil || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("got %v", err)
	}
}

func TestAccountThatIsNoAdministratorIsDenied(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"admin","tags":["management"]}`)
	}))
	defer server.Close()
	_, err := Connect(t.Context(), Server{Address: server.Listener.Addr().String(), User: "admin", Password: password})
	found, ok := errors.AsType[*registration.Denied](err)
	if !ok || found.Account != "admin" || !strings.Contains(err.Error(), "administrator") {
		t.Errorf("got %v", err)
	}
}

func TestNoRequestIsMadeOfAnUnsafeName(t *testing.T) {
	client := broken(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, name := range []string{"", "/", "..", "a/b", "a%2Fb", "a?b", "a#b", "A", strings.Repeat("x", 129)} {
		for operation, err := range every(t.Context(), client, name) {
			if err == nil {
				t.Errorf("%s accepts the name %q", operation, name)
			}
		}
	}
}

func TestMarkThatRabbitMQWouldSplitIsRefused(t *testing.T) {
	client := broken(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, mark := range []registration.Mark{"asterism a,administrator", registration.Mark(strings.Repeat("x", 256))} {
		if err := client.EnsureUser(t.Context(), User{Name: "demo", Vhost: "demo"}, mark); err == nil {
			t.Errorf("mark %q was accepted", mark)
		}
	}
}
