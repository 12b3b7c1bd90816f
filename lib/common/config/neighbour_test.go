package config

import (
	"slices"
	"strings"
	"testing"
)

func identityOf(t *testing.T, more ...string) Identity {
	t.Helper()
	identity, err := ParseIdentity(secret(append([]string{"authURL", "http://k:5000/v3", "user", "u", "password", "p", "region", "R1"}, more...)...))
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func TestNeighbours(t *testing.T) {
	account := identityOf(t, "ca.crt", certificate)
	all := map[string]string{ // options, in the order of the file, without those of the account
		"Barbican":      "barbican: auth_endpoint=http://k:5000/v3 barbican_region_name=R2 barbican_endpoint_type=public send_service_user_token=true barbican_endpoint=http://n:1 verify_ssl_path=/etc/project/identity-ca.crt; barbican_service_user: ACCOUNT PROJECT",
		"Cinder":        "cinder: ACCOUNT PROJECT os_region_name=R2 catalog_info=special::publicURL endpoint_template=http://n:1",
		"Glance":        "glance: region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1",
		"Ironic":        "ironic: CALLED",
		"Neutron":       "neutron: CALLED",
		"Placement":     "placement: CALLED",
		"UnifiedLimits": "oslo_limit: ACCOUNT system_scope=all CAFILE endpoint_id=e; quota: driver=nova.quota.UnifiedLimitsDriver",
	}
	const called = "ACCOUNT PROJECT region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1"
	expand := strings.NewReplacer(
		"ACCOUNT", "auth_type=password auth_url=http://k:5000/v3 username=u password=p user_domain_name=Default",
		"PROJECT", "project_domain_name=Default project_name=service cafile=/etc/project/identity-ca.crt",
		"CAFILE", "cafile=/etc/project/identity-ca.crt",
	)
	for name, want := range all {
		want = expand.Replace(strings.ReplaceAll(want, "CALLED", called))
		c := NewConnections("/etc/project")
		c.Neighbour(Neighbour{Name: name, Account: account, Region: "R2", Interface: "public", ServiceType: "special", Endpoint: "http://n:1", EndpointID: "e"})
		if got := oneLine(c.Sections); got != want {
			t.Errorf("%s\n got %s\nwant %s", name, got, want)
		}
	}
	if len(all) != len(neighbours) {
		t.Errorf("%d neighbours are tested, %d exist", len(all), len(neighbours))
	}
}

func oneLine(sections Sections) string {
	var lines []string
	for _, section := range sections {
		line := section.Name + ":"
		for _, setting := range section.Settings {
			line += " " + setting.Name + "=" + setting.Value
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestNeighbourDefaults(t *testing.T) {
	c := NewConnections("/etc/project")
	c.Neighbour(Neighbour{Name: "Cinder", Account: identityOf(t), Interface: "internal"})
	for option, want := range map[string]string{"os_region_name": "R1", "catalog_info": "volumev3::internalURL", "endpoint_template": "", "cafile": ""} {
		if got := c.Sections.Get("cinder", option); got != want {
			t.Errorf("%s is %q, want %q", option, got, want)
		}
	}
}

func TestAccountsHaveAuthoritiesOfTheirOwn(t *testing.T) {
	c := NewConnections("/etc/project")
	c.ServiceUser(identityOf(t, "ca.crt", certificate))
	c.Neighbour(Neighbour{Name: "Placement", Account: identityOf(t, "ca.crt", certificate), Interface: "internal"})
	c.Neighbour(Neighbour{Name: "Ironic", Account: identityOf(t, "ca.crt", certificate+certificate), Interface: "internal"})
	for section, want := range map[string]string{"service_user": "identity", "placement": "identity", "ironic": "ironic"} {
		if got := c.Sections.Get(section, "cafile"); got != "/etc/project/"+want+"-ca.crt" {
			t.Errorf("[%s] cafile = %s", section, got)
		}
	}
}

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

func TestNotificationBus(t *testing.T) {
	bus, err := ParseMessageBus(with("ca.crt", certificate, "quorumQueues", "true", "vhost", "v"))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnections("/etc/project")
	c.NotificationBus(bus)
	const want = "oslo_messaging_notifications: driver=messagingv2 transport_url=rabbit://u:p@h:5671/v?rabbit_quorum_queue=true&ssl=1&ssl_ca_file=%2Fetc%2Fproject%2Fnotificationbus-ca.crt&ssl_enforce_hostname_verification=true"
	if got := oneLine(c.Sections); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
