package config

import "net/url"

// Identity is what an identity connection Secret says: a service's own user in
// Keystone and where Keystone is.
type Identity struct {
	AuthURL       string // for the services themselves, with its version: https://host:5000/v3
	PublicAuthURL string // told to clients that lack a token; default AuthURL
	User          string
	Password      Password
	Project       string // default service
	UserDomain    string // default Default
	ProjectDomain string // default Default
	Region        string // default RegionOne
	CA            []byte // PEM; nil: the authorities of the image
}

// ParseIdentity reads an identity Secret: authURL, user and password suffice.
// The error is KeyErrors.
func ParseIdentity(data map[string][]byte) (Identity, error) {
	r := secretReader{data: data}
	i := Identity{
		AuthURL:       r.required(KeyAuthURL),
		User:          r.required(KeyUser),
		Password:      Password(r.required(KeyPassword)),
		Project:       r.optional(KeyProject, "service"),
		UserDomain:    r.optional(KeyUserDomain, "Default"),
		ProjectDomain: r.optional(KeyProjectDomain, "Default"),
		Region:        r.optional(KeyRegion, "RegionOne"),
		CA:            r.authority(),
	}
	i.PublicAuthURL = r.optional(KeyPublicAuthURL, i.AuthURL)
	r.webAddress(KeyAuthURL, i.AuthURL)
	if i.PublicAuthURL != i.AuthURL {
		r.webAddress(KeyPublicAuthURL, i.PublicAuthURL)
	}
	return i, r.err()
}

func (r *secretReader) webAddress(key, value string) {
	if value == "" {
		return // reported as missing
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		r.refuse(key, "is not a URL like https://host:5000/v3")
	}
}
