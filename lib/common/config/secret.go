package config

import (
	"encoding/pem"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Keys of connection Secrets. They are a public contract, equal for every service. The type
// that a parser returns documents the defaults.
const (
	KeyUser                  = "user"
	KeyUsername              = "username" // accepted instead of user in an administrator's Secret
	KeyPassword              = "password"
	KeyHostname              = "hostname"
	KeyPort                  = "port"
	KeyDatabase              = "database"
	KeyTLS                   = "tls"
	KeyCA                    = "ca.crt"
	KeyVHost                 = "vhost"
	KeyQuorumQueues          = "quorumQueues"
	KeyTransientQuorumQueues = "transientQuorumQueues"
	KeyAuthURL               = "authURL"
	KeyCredentialID          = "applicationCredentialID" // instead of user, see Identity
	KeyCredentialSecret      = "applicationCredentialSecret"
	KeyPublicAuthURL         = "publicAuthURL"
	KeyProject               = "project"
	KeyUserDomain            = "userDomain"
	KeyProjectDomain         = "projectDomain"
	KeyRegion                = "region"
	KeySharedSecret          = "sharedSecret"
	KeyEndpoint              = "endpoint"
)

// Password is a secret string that prints as *** unless it is converted with string(p).
type Password string

// String hides the value from every %s and %v.
func (Password) String() string { return "***" }

// GoString hides the value from %#v.
func (Password) GoString() string { return "***" }

// MarshalText hides the value from JSON and YAML.
func (Password) MarshalText() ([]byte, error) { return []byte("***"), nil }

// KeyError describes an error in one key of a Secret, without its value.
type KeyError struct {
	Key    string
	Reason string
}

func (e KeyError) Error() string { return fmt.Sprintf("key %s %s", e.Key, e.Reason) }

// KeyErrors are all errors in one Secret, on one line.
type KeyErrors []KeyError

func (e KeyErrors) Error() string {
	texts := make([]string, len(e))
	for i, k := range e {
		texts[i] = k.Error()
	}
	return strings.Join(texts, "; ")
}

// secretReader reads keys and collects their errors.
type secretReader struct {
	data   map[string][]byte
	errors KeyErrors
}

func (r *secretReader) refuse(key, reason string, args ...any) {
	r.errors = append(r.errors, KeyError{Key: key, Reason: fmt.Sprintf(reason, args...)})
}

func (r *secretReader) err() error {
	if len(r.errors) == 0 {
		return nil
	}
	return r.errors
}

// optional returns the value of key, or fallback if it is absent or empty.
func (r *secretReader) optional(key, fallback string) string {
	value := string(r.data[key])
	switch {
	case value == "":
		return fallback
	case !utf8.ValidString(value):
		r.refuse(key, "is not UTF-8 text")
	case strings.ContainsAny(value, "\r\n"):
		r.refuse(key, "contains a line break (echo adds a line break; use printf or --from-literal)")
	case strings.ContainsRune(value, 0):
		r.refuse(key, "contains a NUL character")
	default:
		return value
	}
	return fallback
}

// required returns the value of key, and refuses an absent or empty value.
func (r *secretReader) required(key string) string {
	value, present := r.data[key]
	switch {
	case !present:
		r.refuse(key, "is missing")
	case len(value) == 0:
		r.refuse(key, "is empty")
	}
	return r.optional(key, "")
}

func (r *secretReader) boolean(key string, fallback bool) bool {
	switch r.optional(key, "") {
	case "":
		return fallback
	case "true":
		return true
	case "false":
		return false
	}
	r.refuse(key, `must be "true" or "false"`)
	return fallback
}

func (r *secretReader) port(fallback int) int {
	value := r.optional(KeyPort, "")
	if value == "" {
		return fallback
	}
	port, err := parsePort(value)
	if err != nil {
		r.refuse(KeyPort, "%v", err)
	}
	return port
}

// tls returns whether TLS is used, and the authority that verifies the server. Default: TLS
// if ca.crt exists. TLS without ca.crt is refused, because the drivers of OpenStack's
// services would encrypt without verification.
func (r *secretReader) tls() (bool, []byte) {
	ca := r.authority()
	if !r.boolean(KeyTLS, len(ca) > 0) {
		return false, nil
	}
	if len(r.data[KeyCA]) == 0 {
		r.refuse(KeyTLS, `is "true" and key %s is missing: add the certificates (PEM) of the authority that has signed the server's certificate, because the service would not verify the certificate otherwise`, KeyCA)
	}
	return true, ca
}

// ParseAuthority returns the key ca.crt of a connection Secret, nil if its connection is without
// TLS. The error is KeyErrors.
func ParseAuthority(data map[string][]byte) ([]byte, error) {
	r := secretReader{data: data}
	_, ca := r.tls()
	return ca, r.err()
}

func (r *secretReader) authority() []byte {
	ca := r.data[KeyCA]
	if len(ca) == 0 {
		return nil
	}
	if block, _ := pem.Decode(ca); block == nil || block.Type != "CERTIFICATE" {
		r.refuse(KeyCA, "is not a PEM certificate")
		return nil
	}
	return ca
}

var dnsName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// ParseHost parses one host name or IP address; an IPv6 address may be in brackets. The
// cluster's domain is added to the name of a Service.
func ParseHost(value string) (string, error) {
	bare := strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
	if net.ParseIP(bare) != nil && (bare == value || strings.Contains(bare, ":")) {
		return bare, nil
	}
	if value = completeHost(value); len(value) > 253 || !dnsName.MatchString(value) {
		return "", fmt.Errorf("is not a host name or an IP address")
	}
	return value, nil
}

func parsePort(value string) (int, error) {
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != value {
		return 0, fmt.Errorf("must be a port number from 1 to 65535")
	}
	return port, nil
}

// percentEncode encodes all except the unreserved characters of RFC 3986, so that URL
// parsers, str.format and oslo.config's $ interpret no character.
func percentEncode(value string) string {
	var out strings.Builder
	for i := range len(value) {
		c := value[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// Administrator is the account with which an operator creates accounts. Required keys: user
// (or username), password. Optional keys: ca.crt (required for TLS), tls. The custom
// resource names the server.
type Administrator struct {
	User     string
	Password Password
	TLS      bool
	CA       []byte // PEM, of the authority that verifies the server's certificate
}

// ParseAdministrator parses an administrator's Secret. The error is KeyErrors.
func ParseAdministrator(data map[string][]byte) (Administrator, error) {
	r := secretReader{data: data}
	userKey := KeyUser
	if _, has := data[KeyUser]; !has && len(data[KeyUsername]) > 0 {
		userKey = KeyUsername
	}
	a := Administrator{User: r.required(userKey), Password: Password(r.required(KeyPassword))}
	a.TLS, a.CA = r.tls()
	return a, r.err()
}

// ParseSharedSecret parses the Secret of a value that two services share. Required key:
// sharedSecret. The error is KeyErrors.
func ParseSharedSecret(data map[string][]byte) (Password, error) {
	r := secretReader{data: data}
	secret := Password(r.required(KeySharedSecret))
	return secret, r.err()
}
