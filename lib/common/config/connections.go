package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// ConnectionsPart is the key of the rendered part in the Secret of Connections.
const ConnectionsPart = "50-connections.conf"

// Connections collects the secret part of one instance's configuration: the
// options that the operator owns, and the certificate files that they name.
//
//	c := config.NewConnections("/etc/project")
//	c.Database("database", db)
//	c.MessageBus(bus)
//	data, err := c.Data() // of the Secret
type Connections struct {
	Sections Sections
	files    map[string][]byte
	dir      string
	prefix   string // of the names of CA files, see Store
}

// NewConnections takes the directory of the service's merged configuration, normally
// /etc/<project>, which is in the paths of CA files.
func NewConnections(dir string) *Connections {
	return &Connections{dir: dir, files: map[string][]byte{}}
}

// Data returns the data of the Secret.
func (c *Connections) Data() (map[string][]byte, error) {
	text, err := c.Sections.Render()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{ConnectionsPart: []byte(text)}
	maps.Copy(data, c.files)
	return data, nil
}

// Include adds the options and the CA files of a Secret whose data were rendered by Data,
// also for another directory. Values are literal: a $ in them is not a reference.
func (c *Connections) Include(data map[string][]byte) error {
	assignments, err := parseINI(string(data[ConnectionsPart]))
	if err != nil {
		return fmt.Errorf("key %s: %w", ConnectionsPart, err)
	}
	for _, a := range assignments {
		value := strings.ReplaceAll(unquoted(a.value), `\$`, "$")
		for file, content := range data {
			if name, isCA := strings.CutSuffix(file, caSuffix); isCA && len(content) > 0 {
				value = moved(value, file, func() string { return c.authority(name, content) })
			}
		}
		c.Sections.Set(a.section, a.name, value)
	}
	return nil
}

// moved replaces the path of a file in a value, which is the path or has it in the query of a
// URL. replacement is called only if the value has the path.
func moved(value, file string, replacement func() string) string {
	for separator, encode := range map[string]func(string) string{"/": func(text string) string { return text }, "%2F": url.QueryEscape} {
		if before, after, found := strings.Cut(value, separator+file); found && (after == "" || after[0] == '&') {
			start := strings.LastIndex(before, "=") + 1
			if !strings.HasPrefix(value[start:], separator) {
				continue // no absolute path
			}
			return value[:start] + encode(replacement()) + after
		}
	}
	return value
}

const caSuffix = "-ca.crt"

// CAFile returns the name of the CA file of a connection, for example of database, with the
// prefix of Store.
func CAFile(prefix, connection string) string { return prefix + connection + caSuffix }

// Store prepares for URLs that the service stores in a database, from which other services
// read them: each URL names its own CA file and the type of all queues, and these files have a
// prefix, because the other services also have CA files of their own connections.
func (c *Connections) Store(prefix string) { c.prefix = prefix }

// AddCAFile adds a CA file that URLs in a database name. The host name of a message bus is
// verified by an option of the process and not of the URL: oslo.messaging refuses a URL with an
// option that it does not know, and some releases do not know this one.
func (c *Connections) AddCAFile(file string, ca []byte) {
	c.files[file] = ca
	c.Sections.Set(rabbit, "ssl_enforce_hostname_verification", "true")
}

// AddDatabaseCAFile adds a CA file that only URLs of MariaDB name, unless it is empty.
func (c *Connections) AddDatabaseCAFile(file string, ca []byte) {
	if len(ca) > 0 {
		c.files[file] = ca
	}
}

// authority stores a CA file and returns its path in the container.
func (c *Connections) authority(name string, ca []byte) string {
	if len(ca) == 0 {
		return ""
	}
	file := CAFile(c.prefix, name)
	c.files[file] = ca
	return path.Join(c.dir, file)
}

// Database sets the connection of a section such as database.
func (c *Connections) Database(section string, d Database) {
	c.Sections.Set(section, "connection", d.URL(c.authority(cmp.Or(d.CAName, section), d.CA)))
}

const (
	rabbit          = "oslo_messaging_rabbit"
	transientQuorum = "rabbit_transient_quorum_queue"
	heartbeat       = "heartbeat_in_pthread" // a snippet may set it, see OwnedBy
)

// MessageBus sets [DEFAULT] transport_url and options of the driver.
// heartbeat_in_pthread must be off in services that use eventlet; others may turn it on.
func (c *Connections) MessageBus(m MessageBus) {
	ca, transport := c.authority("messagebus", m.CA), m.URL()
	if c.prefix != "" && ca != "" {
		transport += "&ssl_ca_file=" + percentEncode(ca)
	}
	if c.prefix != "" && m.TransientQuorumQueues { // a file is for all buses of the readers
		transport += "&" + transientQuorum + "=true"
	}
	c.Sections.Set("DEFAULT", "transport_url", transport)
	c.Sections.Set(rabbit, "rabbit_quorum_queue", strconv.FormatBool(m.QuorumQueues))
	if m.TransientQuorumQueues { // in a file, an option that is not known is ignored
		c.Sections.Set(rabbit, transientQuorum, "true")
	}
	c.Sections.Set(rabbit, heartbeat, "false")
	if ca != "" {
		c.Sections.Set(rabbit, "ssl_ca_file", ca)
		c.Sections.Set(rabbit, "ssl_enforce_hostname_verification", "true")
	}
}

// NotificationBus sets the message bus of notifications. TLS and the type of the queues are in
// its URL, because [oslo_messaging_rabbit] is for every bus of a process.
func (c *Connections) NotificationBus(m MessageBus) {
	const notifications = "oslo_messaging_notifications"
	query := url.Values{"rabbit_quorum_queue": {strconv.FormatBool(m.QuorumQueues)}}
	if m.TLS {
		query.Set("ssl", "1")
	}
	if ca := c.authority("notificationbus", m.CA); ca != "" {
		query.Set("ssl_ca_file", ca)
		c.Sections.Set(rabbit, "ssl_enforce_hostname_verification", "true") // not of the URL: see AddCAFile
	}
	address, _, _ := strings.Cut(m.URL(), "?")
	c.Sections.Set(notifications, "driver", "messagingv2")
	c.Sections.Set(notifications, "transport_url", address+"?"+query.Encode())
}

// Auth sets keystoneauth's options of a section, for example service_user. It
// leaves region_name out, which is not an option of every such section.
//
// Each section has all options, because auth_section may only name a section that
// every process of the service registers.
func (c *Connections) Auth(section string, i Identity) {
	c.login(section, i, Setting{"project_domain_name", i.ProjectDomain}, Setting{"project_name", i.Project})
}

// login sets the account of a section, and the scope of its tokens, which an application
// credential has in itself: Keystone refuses another one.
func (c *Connections) login(section string, i Identity, scope ...Setting) {
	settings := append([]Setting{
		{"auth_type", "password"},
		{"auth_url", i.AuthURL},
		{"username", i.User},
		{"password", string(i.Password)},
		{"user_domain_name", i.UserDomain},
	}, scope...)
	if i.CredentialID != "" {
		settings = []Setting{
			{"auth_type", "v3applicationcredential"},
			{"auth_url", i.AuthURL},
			{"application_credential_id", i.CredentialID},
			{"application_credential_secret", string(i.CredentialSecret)},
		}
	}
	for _, setting := range settings {
		c.Sections.Set(section, setting.Name, setting.Value)
	}
	c.Sections.SetUnlessEmpty(section, "cafile", c.IdentityAuthority(section, i.CA))
}

// IdentityAuthority stores the authority of an account, and returns its path in the container.
// Accounts with the same authority share a file.
func (c *Connections) IdentityAuthority(section string, ca []byte) string {
	const name = "identity"
	if other, exists := c.files[name+caSuffix]; exists && !bytes.Equal(other, ca) {
		return c.authority(section, ca)
	}
	return c.authority(name, ca)
}

// Adapter is Auth for a section with which the service calls another service of the
// catalog.
func (c *Connections) Adapter(section string, i Identity) {
	c.Auth(section, i)
	c.Sections.Set(section, "region_name", i.Region)
}

// AuthToken sets [keystone_authtoken], with which an API of a service type validates tokens
// and their access rules. Only users with the role service may send a service token.
func (c *Connections) AuthToken(i Identity, serviceType string) {
	const section = "keystone_authtoken"
	c.Auth(section, i)
	c.Sections.Set(section, "service_type", serviceType)
	c.Sections.Set(section, "www_authenticate_uri", i.PublicAuthURL)
	c.Sections.Set(section, "region_name", i.Region)
	c.Sections.Set(section, "service_token_roles", "service")
	c.Sections.Set(section, "service_token_roles_required", "true")
}

// ServiceUser sets [service_user]: a service token is sent with a user's token, so that
// a user's token that expires during a request still works.
func (c *Connections) ServiceUser(i Identity) {
	c.Auth("service_user", i)
	c.Sections.Set("service_user", "send_service_user_token", "true")
}
