package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const canary = "c4n4ry'\"\\$%@:#?& é"

const certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"

// secret returns the data of a Secret from key, value, key, value…
func secret(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

// with returns the three required keys, changed by pairs; "-" removes a key.
func with(pairs ...string) map[string][]byte {
	data := secret("user", "u", "password", "p", "hostname", "h")
	for key, value := range secret(pairs...) {
		data[key] = value
		if string(value) == "-" {
			delete(data, key)
		}
	}
	return data
}

func TestDatabaseURL(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"three keys suffice": {with(), "mysql+pymysql://u:p@h:3306/fallback"},
		"port and database":  {with("port", "3307", "database", "d"), "mysql+pymysql://u:p@h:3307/d"},
		"canary":             {with("password", canary), "mysql+pymysql://u:c4n4ry%27%22%5C%24%25%40%3A%23%3F%26%20%C3%83%C2%A9@h:3306/fallback"},
		"slash and braces":   {with("password", "a/{b}"), "mysql+pymysql://u:a%2F%7Bb%7D@h:3306/fallback"},
		"Service":            {with("hostname", "mariadb.openstack.svc"), "mysql+pymysql://u:p@mariadb.openstack.svc.cluster.local:3306/fallback"},
		"IPv6":               {with("hostname", "fd00::1"), "mysql+pymysql://u:p@[fd00::1]:3306/fallback"},
		"IPv6 in brackets":   {with("hostname", "[fd00::1]"), "mysql+pymysql://u:p@[fd00::1]:3306/fallback"},
		"TLS with CA":        {with("tls", "true", "ca.crt", certificate), "mysql+pymysql://u:p@h:3306/fallback?ssl_ca=%2Fetc%2Fx%2Fca.crt"},
		"CA means TLS":       {with("ca.crt", certificate), "mysql+pymysql://u:p@h:3306/fallback?ssl_ca=%2Fetc%2Fx%2Fca.crt"},
		"unless it is off":   {with("ca.crt", certificate, "tls", "false"), "mysql+pymysql://u:p@h:3306/fallback"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDatabase(c.data, "fallback")
			if err != nil {
				t.Fatal(err)
			}
			if got := d.URL("/etc/x/ca.crt"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMessageBusURL(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"three keys suffice": {with(), "rabbit://u:p@h:5672//?rabbit_quorum_queue=false"},
		"vhost":              {with("vhost", "v 1"), "rabbit://u:p@h:5672/v%201?rabbit_quorum_queue=false"},
		"TLS":                {with("tls", "true", "ca.crt", certificate), "rabbit://u:p@h:5671//?rabbit_quorum_queue=false&ssl=1"},
		"quorum queues":      {with("quorumQueues", "true"), "rabbit://u:p@h:5672//?rabbit_quorum_queue=true"},
		"TLS with own port":  {with("ca.crt", certificate, "port", "5673"), "rabbit://u:p@h:5673//?rabbit_quorum_queue=false&ssl=1"},
		"Services":           {with("hostname", "a.b.svc:1,c.d.svc"), "rabbit://u:p@a.b.svc.cluster.local:1,u:p@c.d.svc.cluster.local:5672//?rabbit_quorum_queue=false"},
		"list, IPv6 last":    {with("hostname", "[fd00::1]:5674,fd00::2,a, b:5673"), "rabbit://u:p@a:5672,u:p@b:5673,u:p@[fd00::1]:5674,u:p@[fd00::2]:5672//?rabbit_quorum_queue=false"},
		"canary":             {with("password", canary), "rabbit://u:c4n4ry%27%22%5C%24%25%40%3A%23%3F%26%20%C3%A9@h:5672//?rabbit_quorum_queue=false"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ParseMessageBus(c.data)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.URL(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPortsOfABusAreListedOnce(t *testing.T) {
	m, err := ParseMessageBus(with("hostname", "a,b:5673,c"))
	if err != nil || fmt.Sprint(m.Ports()) != "[5672 5673]" {
		t.Errorf("got %v, %v", m.Ports(), err)
	}
}

func TestIdentityDefaults(t *testing.T) {
	i, err := ParseIdentity(secret("authURL", "https://k:5000/v3", "user", "u", "password", "p"))
	want := Identity{
		AuthURL: "https://k:5000/v3", PublicAuthURL: "https://k:5000/v3", User: "u", Password: "p",
		Project: "service", UserDomain: "Default", ProjectDomain: "Default", Region: "RegionOne",
	}
	if err != nil || fmt.Sprintf("%+v", i) != fmt.Sprintf("%+v", want) || i.Password != "p" {
		t.Errorf("got %+v, %v", i, err)
	}
}

func TestApplicationCredentialReplacesThePassword(t *testing.T) {
	for name, more := range map[string][]string{"alone": nil, "beside a password": {"user", "u", "password", "p"}} {
		i, err := ParseIdentity(secret(append([]string{"authURL", "https://k:5000/v3", "applicationCredentialID", "id", "applicationCredentialSecret", `s$`}, more...)...))
		if err != nil || i.User != "" || i.Password != "" {
			t.Errorf("%s: got %+v, %v", name, i, err)
		}
		c := NewConnections("/etc/project")
		c.Adapter("inventory", i)
		data, err := c.Data()
		const want = `[inventory]
auth_type = v3applicationcredential
auth_url = https://k:5000/v3
application_credential_id = id
application_credential_secret = "s\$"
region_name = RegionOne
`
		if got := string(data[ConnectionsPart]); err != nil || got != want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestAdministratorsOfTheRabbitMQClusterOperatorWork(t *testing.T) {
	a, err := ParseAdministrator(secret("username", "u", "password", "p", "host", "ignored", "default_user.conf", "x\ny"))
	if err != nil || a.User != "u" || a.Password != "p" || a.TLS {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestWrongSecretsAreRefusedByKey(t *testing.T) {
	database := func(d map[string][]byte) error { _, err := ParseDatabase(d, "d"); return err }
	bus := func(d map[string][]byte) error { _, err := ParseMessageBus(d); return err }
	identity := func(d map[string][]byte) error {
		if _, given := d["authURL"]; !given {
			d["authURL"] = []byte("http://k/v3")
		}
		_, err := ParseIdentity(d)
		return err
	}
	const unverified = `key tls is "true" and key ca.crt is missing: add the certificates (PEM) of the authority that has signed the server's certificate, because the service would not verify the certificate otherwise`
	for name, c := range map[string]struct {
		parse func(map[string][]byte) error
		data  map[string][]byte
		want  string
	}{
		"nothing":             {database, nil, "key user is missing; key password is missing; key hostname is missing"},
		"a key missing":       {database, with("hostname", "-"), "key hostname is missing"},
		"empty":               {database, with("password", ""), "key password is empty"},
		"line break":          {database, with("password", canary+"\n"), "key password contains a line break (echo adds a line break; use printf or --from-literal)"},
		"not UTF-8":           {database, with("password", "\xff"), "key password is not UTF-8 text"},
		"NUL":                 {database, with("password", "a\x00"), "key password contains a NUL character"},
		"port":                {database, with("port", "65536"), "key port must be a port number from 1 to 65535"},
		"port with a sign":    {database, with("port", "+80"), "key port must be a port number from 1 to 65535"},
		"host with a port":    {database, with("hostname", "h:3306"), "key hostname must be a host without a port: set key port"},
		"host list":           {database, with("hostname", "a,b"), "key hostname is not a host name or an IP address"},
		"host of a URL":       {database, with("hostname", "a/b?c"), "key hostname is not a host name or an IP address"},
		"database":            {database, with("database", "a?b"), "key database must be 1 to 64 letters, digits, _ or -"},
		"tls":                 {database, with("tls", "True"), `key tls must be "true" or "false"`},
		"tls without CA":      {database, with("tls", "true"), unverified},
		"tls with empty CA":   {bus, with("tls", "true", "ca.crt", ""), unverified},
		"CA":                  {database, with("ca.crt", "x"), "key ca.crt is not a PEM certificate"},
		"slash in a password": {bus, with("password", "a/b"), "key password contains a slash, which oslo.messaging does not support in a transport URL, not even encoded; choose another value"},
		"slash in a user":     {bus, with("user", "a/b"), "key user contains a slash, which oslo.messaging does not support in a transport URL, not even encoded; choose another value"},
		"slash in a vhost":    {bus, with("vhost", "/a"), "key vhost contains a slash, which oslo.messaging does not support in a transport URL, not even encoded; choose another value"},
		"percent in a vhost":  {bus, with("vhost", "a%"), "key vhost contains one of % ? # ; or a tab, which oslo.messaging does not support in a vhost; choose another name"},
		"bus list":            {bus, with("hostname", "a,,b:0"), "key hostname entry 2 is not host or host:port; key hostname entry 3 has an invalid port: it must be a port number from 1 to 65535"},
		"quorumQueues":        {bus, with("quorumQueues", "yes"), `key quorumQueues must be "true" or "false"`},
		"authURL":             {identity, with("authURL", "keystone:5000"), "key authURL is not a URL like https://host:5000/v3"},
		"fragment":            {identity, with("authURL", "http://k:5000/v3#"), "key authURL is not a URL like https://host:5000/v3"},
		"bare question mark":  {identity, with("authURL", "http://k:5000/v3?"), "key authURL is not a URL like https://host:5000/v3"},
		"credential":          {identity, secret("applicationCredentialID", "id"), "key applicationCredentialSecret is missing"},
		"no account":          {identity, secret("region", "r"), "key user is missing; key password is missing"},
		"publicAuthURL":       {identity, with("publicAuthURL", "http://u:secret@k"), "key publicAuthURL is not a URL like https://host:5000/v3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.parse(c.data)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestPasswordsAreNeverPrinted(t *testing.T) {
	d, err := ParseDatabase(with("password", "hunter2"), "d")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(d), fmt.Sprintf("%+v", d), fmt.Sprintf("%#v", d), fmt.Sprintf("%s %q %v", d.Password, d.Password, &d), string(asJSON)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("printed: %s", text)
		}
	}
}
