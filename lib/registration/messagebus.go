package registration

import (
	"context"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration/messagebus"
)

// MessageBus is a RabbitMQ. An Account at it is a user with a vhost.
type MessageBus struct {
	// ManagementPort of RabbitMQ. Default: the port management of the Service (with TLS
	// management-tls, if it exists); of a host 15672, or 15671 with TLS.
	ManagementPort *int32
	// QuorumQueues tells the services to create replicated, durable queues, and
	// TransientQuorumQueues also for the queues of one process.
	QuorumQueues, TransientQuorumQueues bool
}

func (MessageBus) kind() string { return "MessageBus" }

func (MessageBus) locator() string { return config.KeyHostname }

func (MessageBus) given() [][]string {
	return [][]string{{config.KeyHostname, config.KeyUser, config.KeyPassword}}
}

func (MessageBus) parse(secret map[string][]byte) error {
	_, err := config.ParseMessageBus(secret)
	return err
}

func (m MessageBus) settings(a Account, in engine.Inputs) (map[string]string, error) {
	admin, err := a.administrator(in)
	if err != nil {
		return nil, err
	}
	name, defaultPort := "amqp", int32(5672)
	if admin.TLS {
		name, defaultPort = "amqps", 5671
	}
	host, port, err := a.address(in, defaultPort, name)
	settings := map[string]string{
		config.KeyHostname:     host,
		config.KeyPort:         strconv.Itoa(port),
		config.KeyVHost:        a.Name,
		config.KeyQuorumQueues: strconv.FormatBool(m.QuorumQueues),
	}
	if m.TransientQuorumQueues {
		settings[config.KeyTransientQuorumQueues] = "true"
	}
	return settings, err
}

func (m MessageBus) connect(ctx context.Context, a Account, in engine.Inputs) ([]remoteObject, func(), error) {
	admin, err := a.administrator(in)
	if err != nil {
		return nil, nil, err
	}
	address, err := m.management(a, in, admin.TLS)
	if err != nil {
		return nil, nil, err
	}
	c, err := messagebus.Connect(ctx, messagebus.Server{
		Address: address, User: admin.User, Password: admin.Password, TLS: admin.TLS, CA: admin.CA,
	})
	if err != nil {
		return nil, nil, err
	}
	mark, user := a.mark(in), messagebus.User{Name: a.user(), Password: a.password(in), Vhost: a.Name}
	return []remoteObject{{
		name:   "vhost " + a.Name,
		ensure: func() error { return c.EnsureVhost(ctx, a.Name, mark) },
		remove: func() error { return c.DeleteVhost(ctx, a.Name, mark) },
		absent: func() (bool, error) { return c.VhostAbsent(ctx, a.Name, mark) },
	}, {
		name:   "user " + user.Name,
		ensure: func() error { return c.EnsureUser(ctx, user, mark) },
		remove: func() error { return c.DeleteUser(ctx, user.Name, mark) },
		absent: func() (bool, error) { return c.UserAbsent(ctx, user.Name, mark) },
	}}, c.Close, nil
}

// management returns the address of RabbitMQ's management API.
func (m MessageBus) management(a Account, in engine.Inputs, tls bool) (string, error) {
	if a.Connection.Host != "" {
		defaultPort := int32(15672)
		if tls {
			defaultPort = 15671
		}
		host, port, err := a.host(int(ptr.Deref(m.ManagementPort, defaultPort)))
		return join(host, port), err
	}
	service, err := a.service(in)
	if err != nil {
		return "", err
	}
	if m.ManagementPort != nil {
		return join(hostname(service), int(*m.ManagementPort)), nil
	}
	names := []string{"management"}
	if tls {
		names = []string{"management-tls", "management"}
	}
	port, ok := namedPort(service, names...)
	if !ok {
		return "", engine.Wait("Service %s has no port named %s: set messageBus.managementPort", service.Name, strings.Join(names, " or "))
	}
	return join(hostname(service), port), nil
}

func (MessageBus) remains(a Account) string { return "user " + a.user() + " and vhost " + a.Name }

// BusLocation returns the addresses and the vhost of a message bus: host:port,…/vhost.
func BusLocation(a Account, in engine.Inputs) (string, error) {
	data, err := a.connection(in)
	if err != nil {
		return "", err
	}
	m, err := config.ParseMessageBus(data)
	hosts := make([]string, 0, len(m.Hosts))
	for _, host := range m.Hosts {
		hosts = append(hosts, host.String())
	}
	return strings.Join(hosts, ",") + "/" + strings.TrimPrefix(m.VHost, "/"), a.unusable(err)
}
