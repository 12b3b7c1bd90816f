package config

import (
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

// servers returns the hosts in the form of python-memcached, which has a prefix for IPv6.
func (m Memcached) servers() string {
	var servers []string
	for _, host := range m.Hosts {
		server := host.String()
		if ip := net.ParseIP(host.Host); ip != nil && ip.To4() == nil {
			server = "inet6:" + server
		}
		servers = append(servers, server)
	}
	return strings.Join(servers, ",")
}

// Memcached sets [cache], and in a service that validates tokens the cache for tokens. Tokens
// are encrypted with a key that is derived from the password of the service, because every
// client of memcached can read and write every entry.
func (c *Connections) Memcached(m Memcached) {
	ca := c.authority("memcached", m.CA)
	c.Sections.Set("cache", "enabled", "true")
	c.Sections.Set("cache", "backend", "oslo_cache.memcache_pool")
	c.Sections.Set("cache", "memcache_servers", m.servers())
	c.Sections.Set("cache", "tls_enabled", strconv.FormatBool(m.TLS))
	c.setUnlessEmpty("cache", "tls_cafile", ca)
	const tokens = "keystone_authtoken"
	password := c.Sections.Get(tokens, "password")
	if password == "" {
		return
	}
	c.Sections.Set(tokens, "memcached_servers", m.servers())
	c.Sections.Set(tokens, "memcache_tls_enabled", strconv.FormatBool(m.TLS))
	c.setUnlessEmpty(tokens, "memcache_tls_cafile", ca)
	key := hmac.New(sha256.New, []byte(password))
	key.Write([]byte("tokens in memcached"))
	c.Sections.Set(tokens, "memcache_security_strategy", "ENCRYPT")
	c.Sections.Set(tokens, "memcache_secret_key", hex.EncodeToString(key.Sum(nil)))
}
