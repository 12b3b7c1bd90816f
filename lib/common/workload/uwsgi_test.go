package workload

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"asterism.dev/lib/common/certificatetest"
)

// application answers with the scheme of the request. A request for /wait is answered when the file
// "continue" exists.
const application = `
import os, time
def application(environ, start_response):
    here = os.path.dirname(os.path.abspath(__file__))
    if environ["PATH_INFO"] == "/wait":
        open(os.path.join(here, "waits"), "w").close()
        while not os.path.exists(os.path.join(here, "continue")):
            time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["wsgi.url_scheme"].encode()]
`

// TestUWSGIServesTLS serves an application with the real uWSGI, and stops it during a request.
func TestUWSGIServesTLS(t *testing.T) {
	if _, err := exec.LookPath("uwsgi_python3"); err != nil {
		t.Fatal("uWSGI is missing; on Debian or Ubuntu type: sudo apt-get install uwsgi-core uwsgi-plugin-python3")
	}
	authority := certificatetest.NewAuthority(t)
	certificate, key := authority.Sign(t, time.Now().Add(time.Hour), "127.0.0.1")
	i := newImage(t, nil)
	for name, content := range map[string]string{"thing-api-wsgi": application, "api.crt": string(certificate), "api.key": string(key)} {
		i.write(name, content)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	server := exec.CommandContext(t.Context(), "/usr/bin/python3", filepath.Join(i.dir, startWSGITLSName),
		"--certificate", filepath.Join(i.dir, "api.crt"), "--key", filepath.Join(i.dir, "api.key"), "--workers", "1", port, "thing-api-wsgi", "no.module")
	server.Env = []string{"PATH=" + i.dir + ":/usr/bin:/bin"}
	server.Stdout, server.Stderr = t.Output(), t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.PEM)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}

	var answer string
	until(t, "the server answers", func() bool { answer = get(t, client, "https://"+address+"/"); return answer != "" })
	if answer != "https" {
		t.Errorf("the scheme of a request is %q", answer)
	}
	if plain := get(t, client, "http://"+address+"/"); plain != "" {
		t.Errorf("without TLS, the server answers %q", plain)
	}
	answers := make(chan string)
	go func() { answers <- get(t, client, "https://"+address+"/wait") }()
	until(t, "the request has begun", func() bool { _, err := os.Stat(filepath.Join(i.dir, "waits")); return err == nil })
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	i.write("continue", "")
	if answer := <-answers; answer != "https" {
		t.Errorf("the answer of a server that is stopped is %q", answer)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// get returns the body of an answer, "" without one.
func get(t *testing.T, client *http.Client, url string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		t.Log(err)
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	var network net.ListenConfig
	listener, err := network.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// until waits at most a minute for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + what)
		}
	}
}
