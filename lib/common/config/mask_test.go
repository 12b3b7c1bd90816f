package config_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"asterism.dev/lib/common/config"
)

// canaries are passwords that break incorrect quoting.
var canaries = []string{
	`c4n4ry'"\$%@:#?& é`, `c4n4ry-mariadb'"\$%@:#?& é`, `'c4n4ry-rabbitmq $$ $my_ip "\%@:#?& é `,
	`"c4n4ry-keystone $my_ip $$ '\%@:#?& é`, `$c4n4ry-database'"\$$%@:#?& é`, `c4n4ry-bus'"\$my_ip%@:#?& é `,
	`"c4n4ry-identity'"\$$ ${my_ip} %@:/#?& é `, `'c4n4ry-shared"\$$ $my_ip %@:/#?& `,
	`\pw\`, "%25%25", `a\\\$b`, "日本語", "a😀b", `100%`, "tab\tand\nline",
}

// randomPassword returns a password with characters that are quoted, and without surrounding
// white space.
func randomPassword(random *rand.Rand) string {
	pieces := []string{"$", `\`, `"`, "'", " ", "%", "%20", "+", "#", "=", ":", "@", "/", "?", "&", "a", "7", "é", "ÿ", "日", "😀", "{", "}", "*", "(", "[", "|", "^"}
	text := "Pw"
	for range 2 + random.IntN(10) {
		text += pieces[random.IntN(len(pieces))]
	}
	return text + "d"
}

// writings returns the encodings of a password by all functions that write passwords.
func writings(t *testing.T, password string) map[string]string {
	t.Helper()
	c := config.NewConnections("/etc/project")
	database := config.Database{User: "u", Password: config.Password(password), Hostname: "h", Port: 3306, Database: "d"}
	bus := config.MessageBus{User: "u", Password: config.Password(password), Hosts: []config.HostPort{{Host: "h", Port: 5672}}, VHost: "/"}
	c.Database("database", database)
	c.MessageBus(bus)
	c.Adapter("inventory", config.Identity{AuthURL: "http://k", User: "u", Password: config.Password(password)})
	all := map[string]string{
		"as it is":     password,
		"database URL": database.URL(""),
		"bus URL":      bus.URL(),
		"plain option": config.Quote(password),
		"userinfo":     url.UserPassword("u", password).String(),
		"query":        url.QueryEscape(password),
		"path":         url.PathEscape(password),
		"base64":       base64.StdEncoding.EncodeToString([]byte(password)),
	}
	if data, err := c.Data(); err == nil { // a line break cannot be written
		all["connections"] = string(data[config.ConnectionsPart])
	}
	return all
}

// quotations returns the encodings of a text in error messages.
func quotations(t *testing.T, text string) map[string]string {
	t.Helper()
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"itself": text,
		"%q":     strconv.Quote(text),
		"%+q":    strconv.QuoteToASCII(text),
		"JSON":   string(encoded),
		"twice":  strconv.Quote(strconv.Quote(text)),
		"Python": "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`).Replace(text) + "'",
		"bytes":  "b" + bytesOfPython(text),
	}
}

func bytesOfPython(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		switch {
		case b == '\'' || b == '\\':
			fmt.Fprintf(&out, `\%c`, b)
		case b < ' ' || b > '~':
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	return "'" + out.String() + "'"
}

// TestMaskKnowsEverySpelling: no part of an unusual password remains after it was written and
// quoted, and no other text is masked.
func TestMaskKnowsEverySpelling(t *testing.T) {
	// Characters that quote a password, or surround it.
	quotes := strings.NewReplacer(`"`, "", "'", "", `\`, "", "%20", "", "+", "", " ", "")
	const harmless = "harmless"
	random := rand.New(rand.NewPCG(1, 1))
	passwords := canaries
	for range 200 {
		passwords = append(passwords, randomPassword(random))
	}
	without := writings(t, harmless)
	without["base64"] = harmless
	for _, password := range passwords {
		known := config.NewMasks()
		known.Add("demo", map[string][]byte{"password": []byte(password)})
		for writing, text := range writings(t, password) {
			expected := quotations(t, strings.ReplaceAll(without[writing], harmless, "***"))
			for quotation, quoted := range quotations(t, text) {
				if got, want := known.Hide(quoted), expected[quotation]; quotes.Replace(got) != quotes.Replace(want) {
					t.Errorf("%q as %s, %s:\n%s\nbecomes\n%s\nwant\n%s", password, writing, quotation, quoted, got, want)
				}
			}
		}
	}
}

func TestMaskHidesWholeFiles(t *testing.T) {
	known := config.NewMasks()
	file := strings.Repeat("[database]\nmax_retries = -1\n", 50)
	known.Add("demo", map[string][]byte{"50-connections.conf": []byte(file)})
	encoded := base64.StdEncoding.EncodeToString([]byte(file))
	if got := known.Hide("no " + file + "and no " + encoded); got != "no ***\nand no ***" {
		t.Errorf("got %q", got)
	}
}

func TestMaskHidesSecretOptionsOfSnippets(t *testing.T) {
	known := config.NewMasks()
	known.Add("demo", map[string][]byte{"ldap": []byte("[ldap]\nuser = admin-of-ldap\npassword: 'c4n4ry one'\n[cache]\nurl = https://me:c4n4ry-two@cache.example/1\ntls_key = c4n4ry\n  three\n")})
	for message, masked := range map[string]string{
		"admin-of-ldap uses c4n4ry one":              "admin-of-ldap uses ***",
		"no answer of me:c4n4ry-two@cache.example":   "no answer of me:***@cache.example",
		"the key c4n4ry\nthree is not a certificate": "the key *** is not a certificate",
	} {
		if got := known.Hide(message); got != masked {
			t.Errorf("%s becomes %s, want %s", message, got, masked)
		}
	}
}

func TestMaskHidesWhatSecretsHold(t *testing.T) {
	known := config.NewMasks()
	known.Add("demo", map[string][]byte{
		"password": []byte(`p@ss"w/ord`), "transport_url": []byte(`p@ss"w/ord-and-more`), "hostname": []byte("db.example"), "token": []byte("ab"),
	})
	for message, masked := range map[string]string{
		`login as thing with p@ss"w/ord at db.example`: "login as thing with *** at db.example",
		`p@ss"w/ord-and-more`:                          "***",
		"mysql://thing:p%40ss%22w%2Ford@db.example":    "mysql://thing:***@db.example",
		`{"password":"p@ss\"w/ord"}`:                   `{"password":"***"}`,
		"cEBzcyJ3L29yZA==":                             "***",
		"about":                                        "about", // too short to be distinguished from text
	} {
		if got := known.Hide(message); got != masked {
			t.Errorf("%s becomes %s, want %s", message, got, masked)
		}
	}
}
