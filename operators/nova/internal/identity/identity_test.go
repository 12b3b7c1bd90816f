package identity

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
		"host name":                "nobody.invalid:5000",
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			scheme := "http://"
			if cause == "certificate refused" {
				scheme = "https://"
			}
			start := time.Now()
			_, err := Connect(context.Background(), Server{AuthURL: scheme + address + "/v3", User: "admin", Password: password})
			registrationtest.MustBeUnreachable(t, err, address, cause, password, start)
		})
	}
}

func TestAuthURLMayEndWithTheVersionOrNot(t *testing.T) {
	for text, want := range map[string][2]string{
		"http://keystone:5000":                 {"http://keystone:5000/v3/", "keystone:5000"},
		"http://keystone:5000/":                {"http://keystone:5000/v3/", "keystone:5000"},
		"http://keystone:5000/v3":              {"http://keystone:5000/v3/", "keystone:5000"},
		"https://cloud.example.org/identity/":  {"https://cloud.example.org/identity/v3/", "cloud.example.org:443"},
		"http://cloud.example.org/identity/v3": {"http://cloud.example.org/identity/v3/", "cloud.example.org:80"},
		"https://[2001:db8::1]:5000/v3/":       {"https://[2001:db8::1]:5000/v3/", "[2001:db8::1]:5000"},
	} {
		endpoint, address, err := parseAuthURL(text)
		if endpoint != want[0] || address != want[1] || err != nil {
			t.Errorf("%s becomes %s at %s, %v", text, endpoint, address, err)
		}
	}
	for _, text := range []string{"", "keystone:5000", "ftp://keystone", "http://admin:c4n4ry@keystone", "http://keystone\x00c4n4ry", "http://k/?password=c4n4ry"} {
		_, _, err := parseAuthURL(text)
		if err == nil || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// broken connects to a Keystone that gives the administrator a token, and
// answers everything else with handler.
func broken(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	tokens := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tokens++; tokens == 1 {
			w.Header().Set("X-Subject-Token", "t")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token":{}}`)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := Connect(t.Context(), Server{AuthURL: server.URL, User: "admin", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// every calls each operation of the client.
func every(ctx context.Context, client *Client, name string) map[string]error {
	_, userAbsent := client.UserAbsent(ctx, name, "", mark)
	_, catalogAbsent := client.CatalogAbsent(ctx, "compute", mark)
	return map[string]error{
		"EnsureUser":    client.EnsureUser(ctx, User{Name: name, Password: password, Roles: []string{"admin"}}, mark),
		"DeleteUser":    client.DeleteUser(ctx, name, "", mark),
		"UserAbsent":    userAbsent,
		"EnsureCatalog": client.EnsureCatalog(ctx, Catalog{ServiceType: "compute", ServiceName: "nova", Region: "RegionOne"}, mark),
		"DeleteCatalog": client.DeleteCatalog(ctx, "compute", mark),
		"CatalogAbsent": catalogAbsent,
	}
}

func TestBrokenAnswerIsAnErrorOfEveryOperation(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		check  func(error) bool
	}{
		"500":              {500, `{"error":{"code":500,"message":"An unexpected error prevented the server"}}`, untyped},
		"503 of a proxy":   {503, "<html>no backend</html>", unreachable},
		"200 of a website": {200, "<html>hello</html>", untyped},
		"401":              {401, `{"error":{"code":401,"message":"token expired"}}`, denied},
		"403":              {403, `{"error":{"code":403,"message":"policy"}}`, denied},
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
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			for operation, err := range every(t.Context(), client, "demo") {
				if err == nil || !test.check(err) || !strings.Contains(err.Error(), client.address) {
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
	return ok && found.Account == "admin"
}

func untyped(err error) bool { return !unreachable(err) && !denied(err) }

func TestRefusalThatQuotesTheRequestDoesNotTellThePassword(t *testing.T) {
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"error":{"code":400,"message":%q}}`, body)
		case strings.HasSuffix(r.URL.Path, "/domains"):
			_, _ = io.WriteString(w, `{"domains":[{"id":"default","name":"Default"}]}`)
		default:
			_, _ = io.WriteString(w, `{"users":[]}`)
		}
	})
	err := client.EnsureUser(t.Context(), User{Name: "demo", Password: password}, mark)
	if err == nil || !strings.Contains(err.Error(), "HTTP 400") || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("got %v", err)
	}
}

func TestNoRequestIsMadeOfAnUnsafeName(t *testing.T) {
	client := broken(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, name := range []string{"", "/", "..", "a/b", "a?b", "a&name=b", "A", strings.Repeat("x", 256)} {
		if err := client.EnsureUser(t.Context(), User{Name: name, Password: password}, mark); err == nil {
			t.Errorf("user %q was accepted", name)
		}
		if err := client.DeleteUser(t.Context(), name, "", mark); err == nil {
			t.Errorf("user %q was accepted", name)
		}
	}
	for _, region := range []string{"", "..", "a/b", "a?b", "a b", strings.Repeat("x", 256)} {
		if err := client.EnsureCatalog(t.Context(), Catalog{ServiceType: "compute", Region: region}, mark); err == nil {
			t.Errorf("region %q was accepted", region)
		}
	}
}
