package config

import (
	"errors"
	"net/url"
	"strings"
)

// Identity is the content of an identity connection Secret: the address of Keystone, and a
// service's user or an application credential, which has the user and the project in itself.
type Identity struct {
	AuthURL          string // for the services, with the version: https://host:5000/v3
	PublicAuthURL    string // in responses to clients without a token; default AuthURL
	User             string
	Password         Password
	Project          string // default service
	UserDomain       string // default Default
	ProjectDomain    string // default Default
	CredentialID     string // of an application credential; "": User and Password
	CredentialSecret Password
	Region           string // default RegionOne
	CA               []byte // PEM; nil: the image's authorities
}

// IdentityKeys returns the required keys of an identity Secret: those of one of the alternatives.
func IdentityKeys() [][]string {
	return [][]string{{KeyAuthURL, KeyUser, KeyPassword}, {KeyAuthURL, KeyCredentialID, KeyCredentialSecret}}
}

// ParseIdentity parses an identity Secret, see IdentityKeys. An application credential is used
// instead of user and password. The error is KeyErrors.
func ParseIdentity(data map[string][]byte) (Identity, error) {
	r := secretReader{data: data}
	i := Identity{
		AuthURL:       r.webAddress(KeyAuthURL, r.required(KeyAuthURL)),
		CredentialID:  r.optional(KeyCredentialID, ""),
		Project:       r.optional(KeyProject, "service"),
		UserDomain:    r.optional(KeyUserDomain, "Default"),
		ProjectDomain: r.optional(KeyProjectDomain, "Default"),
		Region:        r.optional(KeyRegion, "RegionOne"),
		CA:            r.authority(),
	}
	if i.CredentialID != "" {
		i.CredentialSecret = Password(r.required(KeyCredentialSecret))
	} else {
		i.User, i.Password = r.required(KeyUser), Password(r.required(KeyPassword))
	}
	i.PublicAuthURL = i.AuthURL
	if public := r.optional(KeyPublicAuthURL, ""); public != "" {
		i.PublicAuthURL = r.webAddress(KeyPublicAuthURL, public)
	}
	return i, r.err()
}

// webAddress returns the URL with the complete name of its host.
func (r *secretReader) webAddress(key, value string) string {
	if value == "" {
		return "" // reported as missing
	}
	address, err := ParseWebAddress(value)
	if err != nil {
		r.refuse(key, "%s", err)
		return value
	}
	return address.String()
}

// ParseWebAddress parses the URL of a service: only scheme, host, port and path. The host
// name of a Kubernetes Service is completed.
func ParseWebAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" || strings.ContainsAny(text, "?#") {
		return nil, errors.New("is not a URL like https://host:5000/v3")
	}
	if host := completeHost(u.Hostname()); host != u.Hostname() {
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		u.Host = host
	}
	return u, nil
}
