package config

import (
	"slices"
	"testing"
)

func TestMemcached(t *testing.T) {
	m, err := ParseMemcached(secret("hostname", "m1,m2:11212,2001:db8::1", "ca.crt", certificate))
	if err != nil {
		t.Fatal(err)
	}
	const servers = "m1:11211,m2:11212,inet6:[2001:db8::1]:11211"
	const data = "cache: enabled=true backend=dogpile.cache.pymemcache memcache_servers=m1:11211,m2:11212,[2001:db8::1]:11211 tls_enabled=true tls_cafile=/etc/project/memcached-ca.crt"
	c := NewConnections("/etc/project")
	c.Memcached(m)
	if got := oneLine(c.Sections); got != data {
		t.Errorf("got %s, want %s", got, data)
	}

	keys := []string{}
	for _, password := range []string{"p", "p", "q"} {
		api := NewConnections("/etc/project")
		api.AuthToken(identityOf(t, "password", password), "compute")
		api.Memcached(m)
		keys = append(keys, api.Sections.Get("keystone_authtoken", "memcache_secret_key"))
		for option, want := range map[string]string{
			"memcached_servers": servers, "memcache_tls_enabled": "true", "memcache_tls_cafile": "/etc/project/memcached-ca.crt", "memcache_security_strategy": "ENCRYPT",
		} {
			if got := api.Sections.Get("keystone_authtoken", option); got != want {
				t.Errorf("%s is %q, want %q", option, got, want)
			}
		}
	}
	credential := NewConnections("/etc/project")
	credential.AuthToken(identityOf(t, "user", "", "password", "", "applicationCredentialID", "id", "applicationCredentialSecret", "p"), "compute")
	credential.Memcached(m)
	if got := credential.Sections.Get("keystone_authtoken", "memcached_servers"); got != servers {
		t.Errorf("with an application credential: memcached_servers is %q", got)
	}
	if keys[0] != keys[1] || keys[1] == keys[2] || len(keys[0]) != 64 || slices.Contains(keys, "p") {
		t.Errorf("keys: %v", keys)
	}
}

func TestMemcachedIsRefused(t *testing.T) {
	for _, data := range []map[string][]byte{secret(), secret("hostname", ""), secret("hostname", "http://m:1"), secret("hostname", "m", "port", "0")} {
		if _, err := ParseMemcached(data); err == nil {
			t.Errorf("accepted %v", data)
		}
	}
}
