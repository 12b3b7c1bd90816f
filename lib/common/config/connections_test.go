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
	c.AuthToken(identity, "compute")
	c.Adapter("inventory", identity)
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
transport_url = rabbit://u:p@h:5671/v?rabbit_quorum_queue=true&ssl=1

[oslo_messaging_rabbit]
rabbit_quorum_queue = true
heartbeat_in_pthread = false
ssl_ca_file = /etc/project/messagebus-ca.crt
ssl_enforce_hostname_verification = true

[keystone_authtoken]
` + auth + `service_type = compute
www_authenticate_uri = https://public/v3
region_name = RegionOne
service_token_roles = service
service_token_roles_required = true

[inventory]
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

func TestIncludeReadsRenderedConnectionsForAnotherDirectory(t *testing.T) {
	render := func(dir string) *Connections {
		t.Helper()
		bus, err := ParseMessageBus(with("ca.crt", certificate, "vhost", "v"))
		if err != nil {
			t.Fatal(err)
		}
		identity, err := ParseIdentity(secret("authURL", "http://k:5000/v3", "user", `"quoted"`, "password", `a$b\$c "d'`, "ca.crt", certificate))
		if err != nil {
			t.Fatal(err)
		}
		c := NewConnections(dir)
		c.MessageBus(bus)
		c.Adapter("inventory", identity)
		c.NotificationBus(bus)
		c.Sections.Set("service_user", "note", "/etc/project/parts/none-ca.crt")
		return c
	}
	data := func(c *Connections) map[string]string {
		t.Helper()
		rendered, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for key, value := range rendered {
			texts[key] = string(value)
		}
		return texts
	}
	parts, err := render("/etc/project/parts").Data()
	if err != nil {
		t.Fatal(err)
	}
	included := NewConnections("/etc/project")
	if err := included.Include(parts); err != nil {
		t.Fatal(err)
	}
	if got, want := data(included), data(render("/etc/project")); !maps.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got[ConnectionsPart], want[ConnectionsPart])
	}
}

func TestIncludeNamesTheLineOfAnError(t *testing.T) {
	for text, want := range map[string]string{
		"a = b":                         "key 50-connections.conf: line 1: ",
		"[DEFAULT]\npassword hunter2\n": "key 50-connections.conf: line 2: ",
	} {
		err := NewConnections("/etc/project").Include(map[string][]byte{ConnectionsPart: []byte(text)})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want %s…", text, err, want)
		}
	}
}

func TestIncludedValueOfSeveralLinesIsRefused(t *testing.T) {
	c := NewConnections("/etc/project")
	if err := c.Include(map[string][]byte{ConnectionsPart: []byte("[a]\nb = c\n  d\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Data(); err == nil || !strings.Contains(err.Error(), "[a] b: the value contains a line break") {
		t.Errorf("got %v", err)
	}
}

func TestTransportPorts(t *testing.T) {
	for url, want := range map[string][]int{
		"rabbit://u:p@h:5673/v":                    {5673},
		"rabbit://u:p@a:5672,u:p@b:5672,u:p@c:1//": {5672, 1},
		"rabbit://u:p%40%2F@[2001:db8::5]:5671/v":  {5671},
		"rabbit://u:p@h/v":                         {5672},
		"rabbit://u:p@h/v?ssl=1":                   {5671},
		"rabbit://u:p@h/v?a=b&ssl=1":               {5671},
		"":                                         nil,
		"rabbit://u:p@/v":                          nil,
		"rabbit://u:p@h:port/v":                    nil,
	} {
		got, err := TransportPorts(url)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: got %v and %v, want %v", url, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the error has the password: %v", url, err)
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
	const want = "oslo_messaging_rabbit: ssl_enforce_hostname_verification=true; " +
		"oslo_messaging_notifications: driver=messagingv2 transport_url=rabbit://u:p@h:5671/v?rabbit_quorum_queue=true&ssl=1&ssl_ca_file=%2Fetc%2Fproject%2Fnotificationbus-ca.crt"
	if got := oneLine(c.Sections); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A URL that other processes read from a database has all that they need, except an option that
// not every release of oslo.messaging accepts in a URL.
func TestStoredURLsNameTheirOwnCAFiles(t *testing.T) {
	database, err := ParseDatabase(with("ca.crt", certificate), "d")
	if err != nil {
		t.Fatal(err)
	}
	bus, err := ParseMessageBus(with("ca.crt", certificate, "vhost", "v"))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnections("/etc/project")
	c.Store("part1-")
	c.Database("database", database)
	c.MessageBus(bus)
	for option, want := range map[[2]string]string{
		{"database", "connection"}:   "mysql+pymysql://u:p@h:3306/d?ssl_ca=%2Fetc%2Fproject%2Fpart1-database-ca.crt",
		{"DEFAULT", "transport_url"}: "rabbit://u:p@h:5671/v?rabbit_quorum_queue=false&ssl=1&ssl_ca_file=%2Fetc%2Fproject%2Fpart1-messagebus-ca.crt",
	} {
		if got := c.Sections.Get(option[0], option[1]); got != want {
			t.Errorf("%s: got %s, want %s", option, got, want)
		}
	}
	data, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	if string(data[CAFile("part1-", "database")]) != certificate || string(data[CAFile("part1-", "messagebus")]) != certificate {
		t.Errorf("files: %v", slices.Sorted(maps.Keys(data)))
	}

	reader := NewConnections("/etc/project")
	reader.AddCAFile("part1-database-ca.crt", []byte(certificate))
	if got, want := oneLine(reader.Sections), "oslo_messaging_rabbit: ssl_enforce_hostname_verification=true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	plain, err := ParseMessageBus(with("vhost", "v"))
	if err != nil {
		t.Fatal(err)
	}
	c.MessageBus(plain)
	if got, want := c.Sections.Get("DEFAULT", "transport_url"), plain.URL(); got != want {
		t.Errorf("without TLS: got %s, want %s", got, want)
	}
}

func TestParseAuthority(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		want string
		err  string
	}{
		"TLS":            {data: secret("ca.crt", certificate), want: certificate},
		"no TLS":         {data: secret("user", "u")},
		"TLS turned off": {data: secret("ca.crt", certificate, "tls", "false")},
		"no certificate": {data: secret("ca.crt", "x"), err: "key ca.crt is not a PEM certificate"},
		"missing key":    {data: secret("tls", "true"), err: "key ca.crt is missing"},
	} {
		ca, err := ParseAuthority(c.data)
		if string(ca) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q and %v", name, ca, err)
		}
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

func identityOf(t *testing.T, more ...string) Identity {
	t.Helper()
	identity, err := ParseIdentity(secret(append([]string{"authURL", "http://k:5000/v3", "user", "u", "password", "p", "region", "R1"}, more...)...))
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// A transport URL with an option that oslo.messaging does not know ends the process; in a file, such
// an option is ignored.
func TestTransientQuorumQueues(t *testing.T) {
	bus, err := ParseMessageBus(with("quorumQueues", "true", "transientQuorumQueues", "true"))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnections("/etc/project")
	c.MessageBus(bus)
	const want = "DEFAULT: transport_url=rabbit://u:p@h:5672//?rabbit_quorum_queue=true; " +
		"oslo_messaging_rabbit: rabbit_quorum_queue=true rabbit_transient_quorum_queue=true heartbeat_in_pthread=false"
	if got := oneLine(c.Sections); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A reader of the URLs of several buses has one [oslo_messaging_rabbit], and the queues of each vhost
// need the type that its other processes use. A file is not enough there.
func TestStoredURLsTellTheTypeOfTransientQueues(t *testing.T) {
	for value, want := range map[string]string{
		"true":  "rabbit://u:p@h:5672//?rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true",
		"false": "rabbit://u:p@h:5672//?rabbit_quorum_queue=true",
	} {
		bus, err := ParseMessageBus(with("quorumQueues", "true", "transientQuorumQueues", value))
		if err != nil {
			t.Fatal(err)
		}
		c := NewConnections("/etc/project")
		c.Store("part1-")
		c.MessageBus(bus)
		if got := c.Sections.Get("DEFAULT", "transport_url"); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}
