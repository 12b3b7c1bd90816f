package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// Database is the content of a database connection Secret.
type Database struct {
	User     string
	Password Password
	Hostname string // DNS name or IP address, IPv6 without brackets
	Port     int    // default 3306
	Database string // default: the parser's argument
	TLS      bool   // default: true if ca.crt exists
	CA       []byte // PEM, of the authority that verifies the server's certificate
	CAName   string // name of the connection in CAFile; default: the section
}

// SQLAlchemy does not decode the database name in a URL.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseDatabase parses a database Secret. Required keys: user, password, hostname. The
// error is KeyErrors.
func ParseDatabase(data map[string][]byte, defaultDatabase string) (Database, error) {
	r := secretReader{data: data}
	d := Database{
		User:     r.required(KeyUser),
		Password: Password(r.required(KeyPassword)),
		Hostname: r.hostname(),
		Port:     r.port(3306),
		Database: r.optional(KeyDatabase, defaultDatabase),
	}
	if !databaseName.MatchString(d.Database) {
		r.refuse(KeyDatabase, "must be 1 to 64 letters, digits, _ or -")
	}
	d.TLS, d.CA = r.tls()
	return d, r.err()
}

func (r *secretReader) hostname() string {
	value := r.required(KeyHostname)
	if value == "" {
		return ""
	}
	host, err := ParseHost(value)
	if err != nil {
		if _, _, split := net.SplitHostPort(value); split == nil {
			err = fmt.Errorf("must be a host without a port: set key %s", KeyPort)
		}
		r.refuse(KeyHostname, "%v", err)
	}
	return host
}

// URL returns the SQLAlchemy URL of the connection. caFile is the path of ca.crt for the
// process that uses the URL; it is ignored without TLS.
//
// The URL has no charset: PyMySQL then uses utf8mb4, which includes the characters of the
// utf8mb3 columns in OpenStack's schemas.
func (d Database) URL(caFile string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "mysql+pymysql://%s:%s@%s/%s", percentEncode(d.User), percentEncode(latin1(string(d.Password))),
		net.JoinHostPort(d.Hostname, strconv.Itoa(d.Port)), d.Database)
	if d.TLS {
		out.WriteString("?ssl_ca=" + percentEncode(caFile))
	}
	return out.String()
}

// latin1 returns one character for each byte of the text. PyMySQL encodes a password in
// latin1, and MariaDB compares it with UTF-8: with this conversion, the bytes are the same.
func latin1(text string) string {
	characters := make([]rune, 0, len(text))
	for _, b := range []byte(text) {
		characters = append(characters, rune(b))
	}
	return string(characters)
}
