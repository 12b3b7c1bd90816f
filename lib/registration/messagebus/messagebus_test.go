package messagebus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

const (
	password = config.Password("c4n4ry'\"\\$%@:#?& é")
	mark     = remote.Mark("asterism c/openstack/demo")
)

func TestServerThatCannotBeReachedIsReportedInTime(t *testing.T) {
	registrationtest.MustReportUnreachable(t, "15672", password, func(address string, withTLS bool) error {
		_, err := Connect(context.Background(), Server{Address: address, User: "admin", Password: password, TLS: withTLS})
		return err
	})
}

// broken connects to a management API that answers every request except whoami with
// handler.
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

// every calls each operation of the client, and returns the errors.
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
	denied := registrationtest.IsDenied("admin", "Not administrator user")
	registrationtest.MustReportAnswers(t, map[string]registrationtest.Answer{
		"500": {Status: 500, Body: `{"error":"Internal Server Error","reason":"badmatch"}`, Check: registrationtest.IsUntyped},
		"401": {Status: 401, Body: `{"error":"not_authorised","reason":"Not administrator user"}`, Check: denied},
	}, password, func(t *testing.T, handler http.HandlerFunc) (map[string]error, string) {
		client := broken(t, handler)
		return every(t.Context(), client, "demo"), client.server.Address
	})
}

func TestVhostThatDoesNotRunIsStarted(t *testing.T) {
	var writes []string
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `{"name":"demo","description":%q,"cluster_state":{"rabbit@a":"running","rabbit@b":"stopped"}}`, mark)
			return
		}
		writes = append(writes, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	})
	if err := client.EnsureVhost(t.Context(), "demo", mark); err != nil {
		t.Fatal(err)
	}
	if want := []string{"POST /api/vhosts/demo/start/rabbit@b"}; !slices.Equal(writes, want) {
		t.Errorf("wrote %q, want %q", writes, want)
	}
}

func TestVhostThatCannotBeStartedIsAnError(t *testing.T) {
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprintf(w, `{"name":"demo","description":%q,"cluster_state":{"rabbit@b":"stopped"}}`, mark)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	err := client.EnsureVhost(t.Context(), "demo", mark)
	if err == nil || !strings.Contains(err.Error(), `could not start vhost "demo" on rabbit@b: HTTP 500`) {
		t.Errorf("got %v", err)
	}
}

func TestRefusalThatQuotesTheRequestDoesNotExposeThePassword(t *testing.T) {
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
	found, ok := errors.AsType[*remote.Denied](err)
	if !ok || found.Account != "admin" || !strings.Contains(err.Error(), "administrator") {
		t.Errorf("got %v", err)
	}
}

func TestUnsafeNameIsRefusedWithoutARequest(t *testing.T) {
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
	for _, mark := range []remote.Mark{"asterism a,administrator", remote.Mark(strings.Repeat("x", 256))} {
		if err := client.EnsureUser(t.Context(), User{Name: "demo", Vhost: "demo"}, mark); err == nil {
			t.Errorf("mark %q was accepted", mark)
		}
	}
}

func TestPasswordIsSentUnmasked(t *testing.T) {
	var sent map[string]string
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.URL.Path == "/api/users/demo" {
			_ = json.NewDecoder(r.Body).Decode(&sent)
		}
		w.WriteHeader(http.StatusCreated)
	})
	if err := client.EnsureUser(t.Context(), User{Name: "demo", Password: password, Vhost: "demo"}, mark); err != nil {
		t.Fatal(err)
	}
	if sent["password"] != string(password) || sent["tags"] != string(mark) {
		t.Errorf("sent %q", sent)
	}
}
