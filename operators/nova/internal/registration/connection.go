package registration

import (
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
	"syscall"
	"time"
	"unicode"
)

const (
	// DialTimeout bounds resolving the host name and opening a connection.
	DialTimeout = 3 * time.Second
	// AnswerTimeout bounds one request, its dialling included: a server that
	// swallows packets fails after this long.
	AnswerTimeout = 5 * time.Second
	// longestAnswer is the number of bytes that are read of one answer over HTTP, and
	// longestConversation of one connection: an editor of a namespace chooses the
	// server, and the operator serves other namespaces too. A decoded answer is up to
	// a hundred times as large.
	longestAnswer       = 256 << 10
	longestConversation = 1 << 20
	longestHeader       = 64 << 10
	// longestQuote is how many characters of a server's message are repeated.
	longestQuote = 200
)

// AllowAnyServer lets the operator connect to its own pod and to the metadata
// services of clouds, and use Services of type ExternalName. It is set before the
// operator starts.
var AllowAnyServer bool

// Dial connects to a host:port within DialTimeout. The connection ends with an error
// after longestConversation.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: DialTimeout, Control: refuseLocal}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &boundedConn{Conn: conn, bounded: bounded{from: conn, left: longestConversation}}, nil
}

// refuseLocal is called with the address that a host name has led to.
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

// metadata are addresses of clouds' metadata services beside the link-local address
// 169.254.169.254: AWS, Azure, Alibaba, Oracle; and those that NAT64 translates.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("64:ff9b::/96"),
}

func isLocal(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		slices.ContainsFunc(metadata, func(prefix netip.Prefix) bool { return prefix.Contains(ip.WithZone("")) })
}

var (
	errLocal   = errors.New("the host has the local address")
	errTooLong = errors.New("the server sent more data than the operator accepts")
)

// bounded reads so many bytes, and then fails.
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

// NewTransport returns an HTTP transport for requests to one server, which is the
// scheme, host and port of a URL. It gives up within AnswerTimeout, reads at most 256
// KiB of an answer, goes straight to the server (no proxy) and follows no redirect:
// an administrator's password must not be carried to another host.
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

// RoundTrip sends one request. A redirect is an error, and so are a request to
// another server, as the next page of a list may be, and an answer that is too long.
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
	response.Body = struct {
		io.Reader
		io.Closer
	}{&bounded{from: response.Body, left: longestAnswer}, response.Body}
	return response, nil
}

// Close closes idle connections.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// Quote is the first line of a server's message, without what does not print, and
// cut to 200 characters. The word at the cut is left out: the rest of a secret would
// not be recognized, and not be masked.
func Quote(said string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(said, "")), "\n")
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, line)
	characters := []rune(line)
	if len(characters) <= longestQuote {
		return line
	}
	line = string(characters[:longestQuote])
	return line[:strings.LastIndex(line, " ")+1] + "…"
}

// Unavailable tells whether an HTTP status means that a server, or what it
// depends on, is down for now.
func Unavailable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
