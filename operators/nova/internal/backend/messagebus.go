package backend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/messagebus"
	"asterism.dev/operators/nova/internal/registration"
)

// MessageBus is one vhost with its user.
type MessageBus struct {
	Server
	// ManagementPort of RabbitMQ; nil: the Service's port "management", with TLS
	// "management-tls".
	ManagementPort *int32
	QueueType      novav1.QueueType
	// Vhost to register. The user is named after it.
	Vhost string
}

// Check refuses a given Secret that no service could use.
func (m MessageBus) Check(in engine.Inputs) error {
	return m.check(in, func(data map[string][]byte) error {
		_, err := config.ParseMessageBus(data)
		return err
	})
}

// Ensure registers the vhost and its user.
func (m MessageBus) Ensure(ctx context.Context, in engine.Inputs) error {
	if m.Connection.Given() {
		return nil
	}
	server, err := m.server(in)
	if err != nil {
		return err
	}
	mark := m.Owner.Mark(in)
	return failure("MessageBus", withMessageBus(ctx, server, func(c *messagebus.Client) error {
		if err := c.EnsureVhost(ctx, m.Vhost, mark); err != nil {
			return err
		}
		return c.EnsureUser(ctx, messagebus.User{Name: m.user(), Password: m.Owner.password(in, m.Key), Vhost: m.Vhost}, mark)
	}))
}

// Secret returns the name of the connection Secret and, if we make it, the
// Secret itself.
func (m MessageBus) Secret(in engine.Inputs) (string, []engine.Child, error) {
	if m.Connection.Given() {
		return m.Connection.ConnectionSecretRef.Name, nil, nil
	}
	admin, err := administrator(in, m.Connection.AdminSecretRef.Name)
	if err != nil {
		return "", nil, err
	}
	port := "amqp"
	if admin.TLS {
		port = "amqps"
	}
	host, number, err := address(in, m.Connection.ServiceRef.Name, port)
	if err != nil {
		return "", nil, err
	}
	data := map[string]string{
		config.KeyHostname:     host,
		config.KeyPort:         strconv.Itoa(number),
		config.KeyUser:         m.user(),
		config.KeyPassword:     string(m.Owner.password(in, m.Key)),
		config.KeyVHost:        m.Vhost,
		config.KeyQuorumQueues: strconv.FormatBool(m.QueueType != novav1.QueueClassic),
	}
	addTLS(data, in.Secret(m.Connection.AdminSecretRef.Name))
	name, secret, err := connectionSecret(m.Owner.Object.GetName()+"-messagebus", data)
	return name, []engine.Child{secret}, err
}

// Remove deletes user and vhost and looks whether they are gone.
func (m MessageBus) Remove(ctx context.Context, in engine.Inputs) error {
	if m.Connection.Given() {
		return nil
	}
	left := fmt.Sprintf("user %s and vhost %s at Service %s", m.user(), m.Vhost, m.Connection.ServiceRef.Name)
	return removal(m.Owner, left, m.gone(in), func() error {
		server, err := m.server(in)
		if err != nil {
			return err
		}
		return failure("MessageBus", withMessageBus(ctx, server, func(c *messagebus.Client) error { return m.remove(ctx, c, m.Owner.Mark(in)) }))
	})
}

func (m MessageBus) remove(ctx context.Context, c *messagebus.Client, mark registration.Mark) error {
	if err := c.DeleteUser(ctx, m.user(), mark); err != nil {
		return err
	}
	if gone, err := c.UserAbsent(ctx, m.user(), mark); err != nil || !gone {
		return orStillThere(err, "user "+m.user())
	}
	if err := c.DeleteVhost(ctx, m.Vhost, mark); err != nil {
		return err
	}
	if gone, err := c.VhostAbsent(ctx, m.Vhost, mark); err != nil || !gone {
		return orStillThere(err, "vhost "+m.Vhost)
	}
	return nil
}

func (m MessageBus) user() string { return m.Owner.Account(m.Vhost) }

func (m MessageBus) server(in engine.Inputs) (messagebus.Server, error) {
	admin, err := administrator(in, m.Connection.AdminSecretRef.Name)
	if err != nil {
		return messagebus.Server{}, err
	}
	address, err := m.management(in, admin.TLS)
	return messagebus.Server{
		Address: address, User: admin.User, Password: admin.Password, TLS: admin.TLS, CA: admin.CA,
	}, err
}

// management is the address of RabbitMQ's management. No other port will do.
func (m MessageBus) management(in engine.Inputs, tls bool) (string, error) {
	service, err := theService(in, m.Connection.ServiceRef.Name)
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

func withMessageBus(ctx context.Context, server messagebus.Server, do func(*messagebus.Client) error) error {
	c, err := messagebus.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}
