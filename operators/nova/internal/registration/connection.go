package registration

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// DialTimeout bounds resolving the host name and opening a connection.
	DialTimeout = 3 * time.Second
	// AnswerTimeout bounds one request, its dialling included: a server that
	// swallows packets fails after this long.
	AnswerTimeout = 5 * time.Second
	// longestAnswer is the number of bytes that are read of one answer.
	longestAnswer = 1 << 20
)

// NewDialer returns a dialer that gives up after DialTimeout.
func NewDialer() *net.Dialer { return &net.Dialer{Timeout: DialTimeout} }

// TLSConfig trusts the certificates in ca (PEM), or the system's if ca is
// empty. The server's certificate is always verified.
func TLSConfig(ca []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) == 0 {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA bundle holds no PEM certificate")
	}
	return config, nil
}

// NewTransport returns an HTTP transport that gives up within AnswerTimeout,
// reads at most 1 MiB of an answer, goes straight to the server (no proxy) and
// follows no redirect: an administrator's password must not be carried to
// another host.
func NewTransport(ca []byte) (*Transport, error) {
	config, err := TLSConfig(ca)
	if err != nil {
		return nil, err
	}
	return &Transport{base: &http.Transport{
		DialContext:           NewDialer().DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   DialTimeout,
		ResponseHeaderTimeout: AnswerTimeout,
	}}, nil
}

// Transport is an http.RoundTripper; see NewTransport.
type Transport struct{ base *http.Transport }

// RoundTrip sends one request. A redirect is an error, and an answer that is
// too long is cut off.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if location := response.Header.Get("Location"); response.StatusCode/100 == 3 && location != "" {
		_ = response.Body.Close()
		return nil, fmt.Errorf("answered with a redirect to %s: give that address instead if it is the right one", location)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, longestAnswer), response.Body}
	return response, nil
}

// Close closes idle connections.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// Unavailable tells whether an HTTP status means that a server, or what it
// depends on, is down for now.
func Unavailable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
