package config

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"
)

// Memcached is the content of a Secret with the connection to memcached.
type Memcached struct {
	Hosts []HostPort
	TLS   bool   // default: true if ca.crt exists
	CA    []byte // PEM, of the authority that verifies the server's certificate
}

// ParseMemcached parses a memcached Secret. Required key: hostname, which may be a list
// host[:port],…. The default port is 11211. The error is KeyErrors.
func ParseMemcached(data map[string][]byte) (Memcached, error) {
	r := secretReader{data: data}
	m := Memcached{Hosts: r.hosts(r.port(11211))}
	m.TLS, m.CA = r.tls()
	return m, r.err()
}

// pythonMemcached is the prefix of IPv6 addresses for python-memcached.
const pythonMemcached = "inet6:"

// client returns the client of [cache], and its prefix of IPv6 addresses. The pool of
// oslo.cache ignores TLS in some releases, and would send data in clear text
// (oslo_cache/_memcache_pool.py).
func (m Memcached) client() (backend, prefix string) {
	if m.TLS {
		return "dogpile.cache.pymemcache", ""
	}
	return "oslo_cache.memcache_pool", pythonMemcached
}

// servers returns the hosts, with a prefix of IPv6 addresses that python-memcached needs and
// pymemcache does not have.
func (m Memcached) servers(prefix string) string {
	var servers []string
	for _, host := range m.Hosts {
		server := host.String()
		if ip := net.ParseIP(host.Host); ip != nil && ip.To4() == nil {
			server = prefix + server
		}
		servers = append(servers, server)
	}
	return strings.Join(servers, ",")
}

// MemcachedDefaults returns the defaults of a service with memcached, and with tokens of one that
// validates tokens. A process notices that a server is lost when a request to it times out, and
// tries it again after dead_retry. With the time-outs of the libraries (up to 3 seconds, and 5
// minutes), a request that needs several entries waits for seconds, and a server that was away
// for a moment stays unused for minutes. Over TLS, [cache] has no time-outs in any release of
// its client (dogpile.cache: PyMemcacheBackend).
func MemcachedDefaults(tokens bool) Sections {
	var sections Sections
	sections.Set("cache", "memcache_dead_retry", "30")
	sections.Set("cache", "memcache_socket_timeout", "0.5")
	if tokens {
		sections.Set("keystone_authtoken", "memcache_pool_dead_retry", "30")
		sections.Set("keystone_authtoken", "memcache_pool_socket_timeout", "1") // an integer
	}
	return sections
}

// Memcached sets [cache], and in a service that validates tokens the cache for tokens. Tokens
// are encrypted with a key that is derived from the password of the service, because every
// client of memcached can read and write every entry.
func (c *Connections) Memcached(m Memcached) {
	ca := c.authority("memcached", m.CA)
	c.Sections.Set("cache", "enabled", "true")
	backend, prefix := m.client()
	c.Sections.Set("cache", "backend", backend)
	c.Sections.Set("cache", "memcache_servers", m.servers(prefix))
	c.Sections.Set("cache", "tls_enabled", strconv.FormatBool(m.TLS))
	c.Sections.SetUnlessEmpty("cache", "tls_cafile", ca)
	const tokens = "keystone_authtoken"
	secret := cmp.Or(c.Sections.Get(tokens, "password"), c.Sections.Get(tokens, "application_credential_secret"))
	if secret == "" {
		return
	}
	c.Sections.Set(tokens, "memcached_servers", m.servers(pythonMemcached))
	c.Sections.Set(tokens, "memcache_tls_enabled", strconv.FormatBool(m.TLS))
	c.Sections.SetUnlessEmpty(tokens, "memcache_tls_cafile", ca)
	key := hmac.New(sha256.New, []byte(secret))
	key.Write([]byte("tokens in memcached"))
	c.Sections.Set(tokens, "memcache_security_strategy", "ENCRYPT")
	c.Sections.Set(tokens, "memcache_secret_key", hex.EncodeToString(key.Sum(nil)))
}
