package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"asterism.dev/lib/common/config"
)

const (
	// DialTimeout bounds resolving the host name and opening a connection.
	DialTimeout = 3 * time.Second
	// AnswerTimeout bounds one request, including its connection, for example to a server
	// behind a firewall that drops packets.
	AnswerTimeout = 5 * time.Second
	// Every editor of a namespace chooses servers, and the operator's memory serves all
	// namespaces. An object of three bytes takes 300 when it is decoded, and so the objects
	// and values of an answer are counted before it is decoded. The product is:
	//
	//	an answer: 256 KiB as text, 2,000 objects, 20,000 values      at most 5 MiB
	//	32 workers with one answer each, which has been decoded     160 MiB
	//	8 answers that are being decoded, with as much garbage       40 MiB
	//
	// which leaves half of the container's 512 MiB. The largest answer that clouds have is
	// the catalog in a token, with an object for each endpoint.
	longestAnswer       = 256 << 10
	maxObjects          = 2000
	maxValues           = 20000
	maxDecoded          = 8
	longestConversation = 1 << 20 // bytes read of one connection
	longestHeader       = 64 << 10
	// longestQuote bounds the characters of a server's message in an error.
	longestQuote = 200
)

// AllowAnyServer allows connections to the operator's own pod and to the metadata services
// of clouds, and Services of type ExternalName. It is set before the operator starts.
var AllowAnyServer bool

// Dial connects to a host:port within DialTimeout. Reading fails after
// longestConversation bytes.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: DialTimeout, Control: refuseLocal}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: conn, bounded: bounded{from: conn, left: longestConversation}}, nil
}

// refuseLocal is called with the IP address that a host name was resolved to.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := target.Addr().Unmap()
	if !AllowAnyServer && isLocal(ip) {
		return fmt.Errorf("%w %s: the operator refuses it without --allow-any-server", errLocal, ip)
	}
	return nil
}

// metadata has the addresses of clouds' metadata services that are not link-local: AWS,
// Google, Oracle, Azure, Alibaba; and the addresses that NAT64,
// 6to4 and Teredo translate into IPv4.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("2001::/32"), // Teredo
}

func isLocal(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		slices.ContainsFunc(metadata, func(prefix netip.Prefix) bool { return prefix.Contains(ip.WithZone("")) })
}

var (
	errLocal   = errors.New("the host has the local address")
	errTooLong = errors.New("the server sent more data than the operator accepts")
)

// bounded fails after left bytes.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}

type boundedConn struct {
	net.Conn
	bounded bounded
}

func (c *boundedConn) Read(into []byte) (int, error) { return c.bounded.Read(into) }

// TLSConfig trusts the certificates in ca (PEM), or the system's if ca is
// empty. The server's certificate is always verified.
func TLSConfig(ca []byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(ca) == 0 {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA bundle has no PEM certificate")
	}
	return config, nil
}

// NewTransport returns an HTTP transport for requests to one server: the scheme, host and
// port of a URL. It waits at most AnswerTimeout, reads at most 256 KiB of an answer, uses
// no proxy and follows no redirect, which would send an administrator's password to
// another host.
func NewTransport(server *url.URL, ca []byte) (*Transport, error) {
	config, err := TLSConfig(ca)
	if err != nil {
		return nil, err
	}
	return &Transport{server: origin(server), base: &http.Transport{
		DialContext:            Dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    DialTimeout,
		ResponseHeaderTimeout:  AnswerTimeout,
		MaxResponseHeaderBytes: longestHeader,
	}}, nil
}

func origin(address *url.URL) string { return address.Scheme + "://" + address.Host }

// Transport is an http.RoundTripper; see NewTransport.
type Transport struct {
	server string
	base   *http.Transport
}

// RoundTrip sends one request. It fails for a redirect, for a request to another server,
// which the link to the next page of a list may name, and for an answer that is too long.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if asked := origin(request.URL); asked != t.server {
		return nil, fmt.Errorf("the answer of %s refers to another server, %s: the operator sends it no request", t.server, Quote(asked))
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if location := response.Header.Get("Location"); response.StatusCode/100 == 3 && location != "" {
		_ = response.Body.Close()
		return nil, fmt.Errorf("answered with a redirect to %s: set this address if it is correct", Quote(location))
	}
	answer, failed := io.ReadAll(&bounded{from: response.Body, left: longestAnswer})
	_ = response.Body.Close()
	if failed == nil {
		failed = checkSize(answer)
	}
	if response.Body, err = beginDecoding(request.Context(), answer, failed); err != nil {
		return nil, err
	}
	return response, nil
}

// checkSize returns an error for a JSON text with too many objects or values.
func checkSize(answer []byte) error {
	objects, values, quoted := 0, 0, false
	for at := 0; at < len(answer); at++ {
		switch c := answer[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			objects++
			values++
		case c == ',':
			values++
		}
	}
	if objects > maxObjects || values > maxValues {
		return fmt.Errorf("an answer has %d objects and %d values, more than the %d and %d that the operator accepts: check the address", objects, values, maxObjects, maxValues)
	}
	return nil
}

// decoding has an element for each answer that is being decoded.
var decoding = make(chan struct{}, maxDecoded) //nolint:gochecknoglobals // it bounds the memory of the process

// beginDecoding returns the body of an answer, or of its beginning and an error, when fewer
// than maxDecoded bodies are open. The answer has been read, so that no server can hold a
// place. A body that is not closed gives its place back after AnswerTimeout.
func beginDecoding(ctx context.Context, answer []byte, failed error) (io.ReadCloser, error) {
	select {
	case decoding <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var once sync.Once
	end := func() { once.Do(func() { <-decoding }) }
	body := &decodedBody{Reader: bytes.NewReader(answer), end: end, late: time.AfterFunc(AnswerTimeout, end)}
	if failed != nil {
		body.Reader = failingReader{failed}
	}
	return body, nil
}

type decodedBody struct {
	io.Reader
	end  func()
	late *time.Timer
}

func (b *decodedBody) Close() error {
	b.late.Stop()
	b.end()
	return nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// Send sends a request, and returns the status and the content of the answer. The error is that of the
// connection, and not of a status, which may be known (not 0) although the content is too long.
func (t *Transport) Send(request *http.Request) (status int, content []byte, err error) {
	response, err := (&http.Client{Transport: t, Timeout: AnswerTimeout}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// Close closes idle connections.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// Quote returns the first line of a server's message, with a space for each unprintable
// character, and cut to 200 characters. The word at the cut is left out, because a part of
// a secret would not be recognized and masked.
func Quote(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.ReplaceAll(config.Printable(line), "\t", " ")
	characters := []rune(line)
	if len(characters) <= longestQuote {
		return line
	}
	line = string(characters[:longestQuote])
	return line[:strings.LastIndex(line, " ")+1] + "…"
}

// Unavailable returns whether an HTTP status means that a server, or a server behind it,
// is temporarily not available.
func Unavailable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
