package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestConnectionsOfAWholeService(t *testing.T) {
	database, err := ParseDatabase(with("ca.crt", certificate), "d")
	if err != nil {
		t.Fatal(err)
	}
	bus, err := ParseMessageBus(with("ca.crt", certificate, "quorumQueues", "true", "vhost", "v"))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ParseIdentity(secret("authURL", "http://k:5000/v3", "publicAuthURL", "https://public/v3", "user", "u", "password", `a$b`, "ca.crt", certificate))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnections("/etc/project")
	c.Database("database", database)
	c.MessageBus(bus)
	c.AuthToken(identity)
	c.Adapter("placement", identity)
	c.ServiceUser(identity)
	data, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	auth := `auth_type = password
auth_url = http://k:5000/v3
username = u
password = "a\$b"
user_domain_name = Default
project_domain_name = Default
project_name = service
cafile = /etc/project/identity-ca.crt
`
	want := `[database]
connection = mysql+pymysql://u:p@h:3306/d?ssl_ca=%2Fetc%2Fproject%2Fdatabase-ca.crt

[DEFAULT]
transport_url = rabbit://u:p@h:5671/v?ssl=1

[oslo_messaging_rabbit]
rabbit_quorum_queue = true
heartbeat_in_pthread = false
ssl_ca_file = /etc/project/messagebus-ca.crt
ssl_enforce_hostname_verification = true

[keystone_authtoken]
` + auth + `www_authenticate_uri = https://public/v3
region_name = RegionOne
service_token_roles = service
service_token_roles_required = true

[placement]
` + auth + `region_name = RegionOne

[service_user]
` + auth + `send_service_user_token = true
`
	if got := string(data[ConnectionsPart]); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	files := slices.Sorted(maps.Keys(data))
	if strings.Join(files, " ") != "50-connections.conf database-ca.crt identity-ca.crt messagebus-ca.crt" {
		t.Errorf("files: %v", files)
	}
}

func TestSetReplacesAndAddAccumulates(t *testing.T) {
	var s Sections
	s.Add("a", "x", "1")
	s.Add("a", "y", "2")
	s.Add("a", "x", "3")
	s.Set("b", "z", "")
	if text, err := s.Render(); err != nil || text != "[a]\nx = 1\ny = 2\nx = 3\n\n[b]\nz = \n" {
		t.Errorf("got %q, %v", text, err)
	}
	s.Set("a", "x", "4")
	if text, err := s.Render(); err != nil || text != "[a]\nx = 4\ny = 2\n\n[b]\nz = \n" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestWhatNoFileCanHoldIsNotRendered(t *testing.T) {
	for _, c := range [][4]string{
		{"a", "x", "1\n2", "[a] x: the value contains a line break"},
		{"a", "x", "1\r", "[a] x: the value contains a line break"},
		{"a]", "x", "1", `section name "a]": use letters, digits, _ . and -`},
		{"a", "x=", "1", `[a] option name "x=": use letters, digits, _ . and -`},
	} {
		var s Sections
		s.Set(c[0], c[1], c[2])
		if _, err := s.Render(); err == nil || err.Error() != c[3] {
			t.Errorf("got %v, want %s", err, c[3])
		}
	}
}
