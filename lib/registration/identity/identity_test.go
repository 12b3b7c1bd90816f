package identity

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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
	registrationtest.MustReportUnreachable(t, "5000", password, func(address string, withTLS bool) error {
		scheme := "http://"
		if withTLS {
			scheme = "https://"
		}
		_, err := Connect(context.Background(), Server{AuthURL: scheme + address + "/v3", User: "admin", Password: password})
		return err
	})
}

func TestAuthURLIsAcceptedWithAndWithoutVersion(t *testing.T) {
	for text, want := range map[string][2]string{
		"http://keystone:5000":                 {"http://keystone:5000/v3/", "keystone:5000"},
		"http://keystone:5000/":                {"http://keystone:5000/v3/", "keystone:5000"},
		"http://keystone:5000/v3":              {"http://keystone:5000/v3/", "keystone:5000"},
		"http://keystone.openstack.svc:5000":   {"http://keystone.openstack.svc.cluster.local:5000/v3/", "keystone.openstack.svc.cluster.local:5000"},
		"https://cloud.example.org/identity/":  {"https://cloud.example.org/identity/v3/", "cloud.example.org:443"},
		"http://cloud.example.org/identity/v3": {"http://cloud.example.org/identity/v3/", "cloud.example.org:80"},
		"https://[2001:db8::1]:5000/v3/":       {"https://[2001:db8::1]:5000/v3/", "[2001:db8::1]:5000"},
	} {
		endpoint, err := parseAuthURL(text)
		if err != nil || endpoint.String() != want[0] || hostPort(endpoint) != want[1] {
			t.Errorf("%s becomes %s, %v", text, endpoint, err)
		}
	}
	for _, text := range []string{"", "keystone:5000", "ftp://keystone", "http://admin:c4n4ry@keystone", "http://keystone\x00c4n4ry", "http://k/?password=c4n4ry", "http://k/v3?", "http://k/v3#c4n4ry"} {
		_, err := parseAuthURL(text)
		if err == nil || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestEndpointIsReadInTheCatalogOfTheLogin, and sends no request.
func TestEndpointIsReadInTheCatalogOfTheLogin(t *testing.T) {
	const catalog = `{"token":{"catalog":[
		{"type":"block-storage","endpoints":[{"interface":"internal","region":"R1","url":"http://block.one/v3/p"}]},
		{"type":"placement","endpoints":[
			{"interface":"internal","region_id":"R2","url":"http://placement.two"},
			{"interface":"public","region_id":"R1","url":"http://placement.public"},
			{"interface":"internal","region_id":"R1","url":"http://placement.one:8778"}]},
		{"type":"network","endpoints":[{"interface":"internal","region_id":"R1","url":"http://user:c4n4ry@network.one"}]},
		{"type":"image","endpoints":[{"interface":"internal","region_id":"R1","url":"http://LONG"}]}]}}`
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("X-Subject-Token", "t")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Replace(catalog, "LONG", strings.Repeat("l", 2048), 1))
	}))
	t.Cleanup(server.Close)
	client, err := Connect(t.Context(), Server{AuthURL: server.URL, User: "nova", Password: password, Region: "R1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for wanted, want := range map[string]string{
		"placement internal": "http://placement.one:8778", "placement internal R2": "http://placement.two", "placement public": "http://placement.public",
		"placement public R2": "", "volumev3,block-storage internal": "http://block.one/v3/p", "network internal": "", "image internal": "", "baremetal internal": "",
	} {
		words := append(strings.Fields(wanted), "")
		if got := client.Endpoint(strings.Split(words[0], ","), words[1], words[2]); got != want {
			t.Errorf("%s: got %q, want %q", wanted, got, want)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

// broken connects to a Keystone that gives the administrator a token, and answers every
// other request with handler.
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

// every calls each operation of the client, and returns the errors.
func every(ctx context.Context, client *Client, name string) map[string]error {
	_, userAbsent := client.UserAbsent(ctx, name, mark)
	_, catalogAbsent := client.CatalogAbsent(ctx, "compute", mark)
	return map[string]error{
		"EnsureUser":    client.EnsureUser(ctx, User{Name: name, Password: password, Roles: []string{"admin"}}, mark),
		"DeleteUser":    client.DeleteUser(ctx, name, mark),
		"UserAbsent":    userAbsent,
		"EnsureCatalog": client.EnsureCatalog(ctx, Catalog{ServiceType: "compute", ServiceName: "nova", Region: "RegionOne"}, mark),
		"DeleteCatalog": client.DeleteCatalog(ctx, "compute", mark),
		"CatalogAbsent": catalogAbsent,
	}
}

func TestBrokenAnswerIsAnErrorOfEveryOperation(t *testing.T) {
	registrationtest.MustReportAnswers(t, map[string]registrationtest.Answer{
		"500": {Status: 500, Body: `{"error":{"code":500,"message":"An unexpected error prevented the server"}}`, Check: registrationtest.IsUntyped},
		"401": {Status: 401, Body: `{"error":{"code":401,"message":"token expired"}}`, Check: registrationtest.IsDenied("admin", "token expired")},
		"403": {Status: 403, Body: `{"error":{"code":403,"message":"policy"}}`, Check: registrationtest.IsDenied("admin", "policy")},
	}, password, func(t *testing.T, handler http.HandlerFunc) (map[string]error, string) {
		client := broken(t, handler)
		return every(t.Context(), client, "demo"), client.address
	})
}

func TestRefusalThatQuotesTheRequestDoesNotExposeThePassword(t *testing.T) {
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

func TestUnsafeNameIsRefusedWithoutARequest(t *testing.T) {
	client := broken(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, name := range []string{"", "/", "..", "a/b", "a?b", "a&name=b", "A", strings.Repeat("x", 256)} {
		if err := client.EnsureUser(t.Context(), User{Name: name, Password: password}, mark); err == nil {
			t.Errorf("user %q was accepted", name)
		}
		if err := client.DeleteUser(t.Context(), name, mark); err == nil {
			t.Errorf("user %q was accepted", name)
		}
	}
	for _, region := range []string{"", "..", "a/b", "a?b", "a b", strings.Repeat("x", 256)} {
		if err := client.EnsureCatalog(t.Context(), Catalog{ServiceType: "compute", Region: region}, mark); err == nil {
			t.Errorf("region %q was accepted", region)
		}
	}
}

func TestEndlessListIsAnError(t *testing.T) {
	client := broken(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"domains":[{"id":"d"}],"links":{"next":"http://%s/v3/domains"}}`, r.Host)
	})
	_, err := client.UserAbsent(t.Context(), "demo", mark)
	if err == nil || !strings.Contains(err.Error(), "more than 20 pages") {
		t.Errorf("got %v", err)
	}
}

// TestManyObjectsAreAnError: a Keystone that every editor of a namespace may start answers
// with the smallest objects, to 32 workers at once. Of 2,000 objects, the most that are
// decoded, the heap has the product that package remote states.
func TestManyObjectsAreAnError(t *testing.T) {
	for objects, want := range map[int]string{85000: "more than the 2000", 1990: "more than 500 objects", 499: "more than 500 objects"} {
		server := httptest.NewServer(registrationtest.RogueKeystone(objects))
		t.Cleanup(server.Close)
		peak := registrationtest.WatchHeap()
		refused := 0
		for workers := 32; refused == 0 && workers > 0; workers /= 2 { // fewer, if the machine is too slow for so many
			refused = lookAtOnce(t, server.URL, workers, fmt.Sprintf("%d objects", objects), want)
		}
		if refused == 0 {
			t.Errorf("%d objects: every request timed out", objects)
		}
		if got := peak(); got > 200<<20 {
			t.Errorf("%d objects: %d MiB were on the heap at once", objects, got>>20)
		}
	}
}

// lookAtOnce returns how many of the workers were refused with the wanted error. The others have
// got no answer in time.
func lookAtOnce(t *testing.T, server string, workers int, about, want string) int {
	t.Helper()
	var all sync.WaitGroup
	var refused atomic.Int32
	for range workers {
		all.Go(func() {
			switch err := lookForUser(t, server); {
			case err != nil && strings.Contains(err.Error(), want):
				refused.Add(1)
			case err == nil || !strings.Contains(err.Error(), "timed out"):
				t.Errorf("%s: got %v, want %s", about, err, want)
			}
		})
	}
	all.Wait()
	return int(refused.Load())
}

func lookForUser(t *testing.T, server string) error {
	t.Helper()
	client, err := Connect(t.Context(), Server{AuthURL: server, User: "admin", Password: password})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.UserAbsent(t.Context(), "demo", mark)
	return err
}
