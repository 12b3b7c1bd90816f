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
	// AnswerTimeout bounds one request, including its connection, for example to a server
	// behind a firewall that drops packets.
	AnswerTimeout = 5 * time.Second
	// longestAnswer bounds the bytes that are read of one HTTP answer, and
	// longestConversation those of one connection: every editor of a namespace chooses
	// servers, and the operator's memory serves all namespaces. A decoded answer is up to
	// a hundred times as large.
	longestAnswer       = 256 << 10
	longestConversation = 1 << 20
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
// Google, Oracle, Azure, Alibaba; and the addresses that NAT64 translates.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"),
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
	response.Body = struct {
		io.Reader
		io.Closer
	}{&bounded{from: response.Body, left: longestAnswer}, response.Body}
	return response, nil
}

// Close closes idle connections.
func (t *Transport) Close() { t.base.CloseIdleConnections() }

// Quote returns the first line of a server's message, with a space for each unprintable
// character, and cut to 200 characters. The word at the cut is left out, because a part of
// a secret would not be recognized and masked.
func Quote(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(message, "")), "\n")
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

// Unavailable returns whether an HTTP status means that a server, or a server behind it,
// is temporarily not available.
func Unavailable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
