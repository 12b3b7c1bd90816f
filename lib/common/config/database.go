package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// Database is what a database connection Secret says.
type Database struct {
	User     string
	Password Password
	Hostname string // DNS name or IP address, IPv6 without brackets
	Port     int    // default 3306
	Database string // default: by role, the parser's argument
	TLS      bool   // default: whether ca.crt is given
	CA       []byte // PEM, of the authority that the server's certificate is verified with
}

// SQLAlchemy takes the database name of a URL as it stands, without decoding.
var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseDatabase reads a database Secret: user, password and hostname suffice.
// The error is KeyErrors.
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
			err = fmt.Errorf("must be a host alone; the port goes into key %s", KeyPort)
		}
		r.refuse(KeyHostname, "%v", err)
	}
	return host
}

// URL is the SQLAlchemy URL of the connection. caFile is where ca.crt stands
// for the process that uses the URL; it is ignored without TLS.
//
// No charset is stated: PyMySQL then speaks utf8mb4, which includes what the
// utf8mb3 columns of OpenStack's schemas hold.
func (d Database) URL(caFile string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "mysql+pymysql://%s:%s@%s/%s", percentEncode(d.User), percentEncode(latin1(string(d.Password))),
		net.JoinHostPort(d.Hostname, strconv.Itoa(d.Port)), d.Database)
	if d.TLS {
		out.WriteString("?ssl_ca=" + percentEncode(caFile))
	}
	return out.String()
}

// latin1 makes one character of each byte of the text. PyMySQL sends a password
// in latin1, while MariaDB knows it in UTF-8: this way the bytes are the same.
func latin1(text string) string {
	characters := make([]rune, 0, len(text))
	for _, b := range []byte(text) {
		characters = append(characters, rune(b))
	}
	return string(characters)
}
