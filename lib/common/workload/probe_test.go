package workload

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// longerThanTheKubelet is longer than the kubelet waits for a TLS handshake, 10 seconds.
const longerThanTheKubelet = 11 * time.Second

// busy accepts connections after the requests before them, which take so long.
type busy struct {
	net.Listener
	of time.Duration
}

func (b busy) Accept() (net.Conn, error) {
	connection, err := b.Listener.Accept()
	if err == nil {
		<-time.After(b.of)
	}
	return connection, err
}

func TestProbeTLS(t *testing.T) {
	i := newImage(t, nil)
	for name, c := range map[string]struct {
		path  string
		plain bool
		busy  time.Duration
		want  string
	}{
		"an answer":                    {path: "/"},
		"an answer without a page":     {path: "/choices"},
		"an answer of a busy service":  {path: "/", busy: longerThanTheKubelet},
		"an error of the service":      {path: "/broken", want: "GET /broken: status 500"},
		"a service that serves no TLS": {path: "/", plain: true, want: "SSLError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(map[string]int{"/choices": http.StatusMultipleChoices, "/broken": http.StatusInternalServerError, "/": http.StatusOK}[r.URL.Path])
			}))
			t.Cleanup(server.Close)
			server.Listener = busy{server.Listener, c.busy}
			if c.plain {
				server.Start()
			} else {
				server.StartTLS()
			}
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			command := exec.CommandContext(t.Context(), "/usr/bin/python3", filepath.Join(i.dir, probeTLSName), port, c.path)
			output, err := command.CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(output), c.want) {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

func TestLivenessOverTLSIsACommand(t *testing.T) {
	for name, c := range map[string]struct {
		secret *commonv1.SecretReference
		wsgi   *WSGI
		exec   bool
	}{
		"HTTP":             {nil, &WSGI{}, false},
		"HTTPS":            {&commonv1.SecretReference{Name: "tls"}, &WSGI{}, true},
		"HTTPS of its own": {&commonv1.SecretReference{Name: "tls"}, nil, true},
		"HTTP of its own":  {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := Service{Name: "thing-api", Project: Project{Name: "thing"}, Port: &Port{Name: "api", Number: 80, HealthPath: "/"}, WSGI: c.wsgi}
			service.ServeTLS(c.secret, "wsgi", "cert", "key")
			liveness := probe(nil, 30, 30, 3)
			service.Port.answers(liveness)
			if (liveness.Exec != nil) != c.exec || (liveness.HTTPGet == nil) != c.exec {
				t.Errorf("the probe is %v", liveness)
			}
			if scripts, err := service.scripts(); err != nil || (scripts[probeTLSName] != "") != c.exec {
				t.Errorf("the pod has the scripts %v, error %v", scripts, err)
			}
		})
	}
}
