package remote_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/registration/remote"
)

// TestRequestsOverTLS checks that the transport for Keystone and RabbitMQ's management API
// verifies the server's certificate, and that the error names the fault of the certificate.
func TestRequestsOverTLS(t *testing.T) {
	signer, other, valid := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t), time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		address  string
		notAfter time.Time
		trusted  certificatetest.Authority
		refusal  string
	}{
		"valid":             {address: "127.0.0.1", notAfter: valid, trusted: signer},
		"another authority": {address: "127.0.0.1", notAfter: valid, trusted: other, refusal: "signed by unknown authority"},
		"expired":           {address: "127.0.0.1", notAfter: time.Now().Add(-time.Minute), trusted: signer, refusal: "certificate has expired or is not yet valid: it is valid from 20"},
		"another name":      {address: "192.0.2.1", notAfter: valid, trusted: signer, refusal: "is valid for 192.0.2.1, not 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := overTLS(t, signer, test.address, test.notAfter)
			transport, err := remote.NewTransport(server, test.trusted.PEM)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.String(), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := transport.RoundTrip(request)
			if err == nil {
				_ = answer.Body.Close()
			}
			if test.refusal == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if message := (&remote.Unreachable{Address: server.Host, Err: err}).Error(); !strings.Contains(message, test.refusal) {
				t.Errorf("message %q lacks %q", message, test.refusal)
			}
		})
	}
}

// overTLS starts a server with a certificate for an IP address.
func overTLS(t *testing.T, signer certificatetest.Authority, name string, notAfter time.Time) *url.URL {
	t.Helper()
	pair, err := tls.X509KeyPair(signer.Sign(t, notAfter, name))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} //nolint:gosec // of a test
	server.StartTLS()
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return address
}
