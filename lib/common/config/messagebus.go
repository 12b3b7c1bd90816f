package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// MessageBus is the content of a message bus connection Secret.
type MessageBus struct {
	User         string
	Password     Password
	Hosts        []HostPort // in the order of the Secret; oslo.messaging shuffles them
	VHost        string     // default /
	TLS          bool       // default: true if ca.crt exists
	CA           []byte     // PEM, of the authority that verifies the server's certificate
	QuorumQueues bool       // default false, as in oslo.messaging
	// TransientQuorumQueues is for the queues of one process: replies, and messages to every process
	// of a kind. All processes of a vhost need the same value, and an oslo.messaging that knows it.
	TransientQuorumQueues bool // default false, as in oslo.messaging
}

// HostPort is one member of a message bus.
type HostPort struct {
	Host string // DNS name or IP address, IPv6 without brackets
	Port int
}

func (h HostPort) String() string { return net.JoinHostPort(h.Host, strconv.Itoa(h.Port)) }

// ParseMessageBus parses a message bus Secret. Required keys: user, password, hostname.
// The hostname may be a list host[:port],…. The default port is 5672, with TLS 5671. The
// error is KeyErrors.
func ParseMessageBus(data map[string][]byte) (MessageBus, error) {
	r := secretReader{data: data}
	m := MessageBus{
		User:         r.required(KeyUser),
		Password:     Password(r.required(KeyPassword)),
		VHost:        r.vhost(),
		QuorumQueues: r.boolean(KeyQuorumQueues, false),

		TransientQuorumQueues: r.boolean(KeyTransientQuorumQueues, false),
	}
	r.refuseSlash(KeyUser, m.User)
	r.refuseSlash(KeyPassword, string(m.Password))
	m.TLS, m.CA = r.tls()
	defaultPort := 5672
	if m.TLS {
		defaultPort = 5671
	}
	m.Hosts = r.hosts(r.port(defaultPort))
	return m, r.err()
}

// refuseSlash refuses a slash: the RabbitMQ driver decodes the URL, encodes it again with a
// function that does not encode /, and then cannot parse the result.
func (r *secretReader) refuseSlash(key, value string) {
	if strings.Contains(value, "/") {
		r.refuse(key, "contains a slash, which oslo.messaging does not support in a transport URL, not even encoded; choose another value")
	}
}

// vhost refuses some characters: the RabbitMQ driver inserts the decoded vhost into a
// second URL, without encoding, where these characters have a meaning.
func (r *secretReader) vhost() string {
	vhost := r.optional(KeyVHost, "/")
	if vhost == "/" {
		return vhost
	}
	r.refuseSlash(KeyVHost, vhost)
	if strings.ContainsAny(vhost, "%?#;\t") {
		r.refuse(KeyVHost, "contains one of %% ? # ; or a tab, which oslo.messaging does not support in a vhost; choose another name")
	}
	return vhost
}

func (r *secretReader) hosts(port int) []HostPort {
	value := r.required(KeyHostname)
	if value == "" {
		return nil
	}
	var hosts []HostPort
	for i, entry := range strings.Split(value, ",") {
		host, err := parseHostPort(strings.TrimSpace(entry), port)
		if err != nil {
			r.refuse(KeyHostname, "entry %d %v", i+1, err)
			continue
		}
		hosts = append(hosts, host)
	}
	return hosts
}

func parseHostPort(entry string, defaultPort int) (HostPort, error) {
	if host, err := ParseHost(entry); err == nil {
		return HostPort{Host: host, Port: defaultPort}, nil
	}
	name, number, err := net.SplitHostPort(entry)
	if err != nil {
		return HostPort{}, fmt.Errorf("is not host or host:port")
	}
	host, err := ParseHost(name)
	if err != nil {
		return HostPort{}, err
	}
	port, err := parsePort(number)
	if err != nil {
		return HostPort{}, fmt.Errorf("has an invalid port: it %w", err)
	}
	return HostPort{Host: host, Port: port}, nil
}

// URL returns the transport URL of oslo.messaging. TLS and the type of the queues are set in
// the URL, because [oslo_messaging_rabbit] applies to every bus of a process, and a process may
// read the URLs of further buses from its database. The vhost / is
// rendered as a second slash. IPv6 addresses are last, because Python's urlsplit accepts
// brackets in a URL only after the last @. oslo.messaging shuffles the hosts, so that
// their order does not matter.
func (m MessageBus) URL() string {
	var hosts, bracketed []string
	for _, host := range m.Hosts {
		netloc := percentEncode(m.User) + ":" + percentEncode(string(m.Password)) + "@" + host.String()
		if strings.Contains(host.Host, ":") {
			bracketed = append(bracketed, netloc)
		} else {
			hosts = append(hosts, netloc)
		}
	}
	hosts = append(hosts, bracketed...)
	vhost := percentEncode(m.VHost)
	if m.VHost == "/" {
		vhost = "/"
	}
	url := "rabbit://" + strings.Join(hosts, ",") + "/" + vhost + "?rabbit_quorum_queue=" + strconv.FormatBool(m.QuorumQueues)
	if m.TLS {
		url += "&ssl=1"
	}
	return url
}

// Ports lists the distinct ports of the bus, for the probe.
func (m MessageBus) Ports() []int {
	var ports []int
	for _, host := range m.Hosts {
		if !slices.Contains(ports, host.Port) {
			ports = append(ports, host.Port)
		}
	}
	return ports
}

// TransportPorts lists the distinct ports in a transport URL, for the probe. A host without
// a port has 5672, with TLS 5671.
func TransportPorts(url string) ([]int, error) {
	_, address, found := strings.Cut(url, "://")
	if !found {
		return nil, errors.New("[DEFAULT] transport_url is not a URL like rabbit://user:password@host:5672/vhost")
	}
	hosts, rest, _ := strings.Cut(address, "/")
	port := 5672
	if _, query, _ := strings.Cut(rest, "?"); slices.Contains(strings.Split(query, "&"), "ssl=1") {
		port = 5671
	}
	var m MessageBus
	for _, netloc := range strings.Split(hosts, ",") {
		host, err := parseHostPort(netloc[strings.LastIndex(netloc, "@")+1:], port)
		if err != nil {
			return nil, fmt.Errorf("[DEFAULT] transport_url has a host that %w", err)
		}
		m.Hosts = append(m.Hosts, host)
	}
	return m.Ports(), nil
}
