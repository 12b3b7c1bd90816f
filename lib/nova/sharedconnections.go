package nova

import (
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// SharedConnections are the connections that all services of one control plane share.
type SharedConnections sharedv1.SharedConnections

// Needs are the Secrets of the connections.
func (s SharedConnections) Needs() []engine.Need {
	var needs []engine.Need
	for _, neighbour := range s.Neighbours {
		if neighbour.SecretRef != nil {
			needs = append(needs, engine.Secret(neighbour.SecretRef.Name, config.KeyAuthURL, config.KeyUser, config.KeyPassword))
		}
	}
	if s.MemcachedSecretRef != nil {
		needs = append(needs, engine.Secret(s.MemcachedSecretRef.Name, config.KeyHostname))
	}
	if s.NotificationBusSecretRef != nil {
		needs = append(needs, engine.Secret(s.NotificationBusSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword))
	}
	return needs
}

// Connect adds the options of the connections. account names the identity Secret with which a
// neighbour without a Secret is called; "": such a neighbour is left out.
func (s SharedConnections) Connect(c *config.Connections, in engine.Inputs, account string) error {
	for _, described := range s.Neighbours {
		if err := addNeighbour(c, in, described, account); err != nil {
			return err
		}
	}
	if ref := s.MemcachedSecretRef; ref != nil {
		memcached, err := config.ParseMemcached(in.Secret(ref.Name))
		if err != nil {
			return engine.Wait("Secret %s: %s", ref.Name, err)
		}
		c.Memcached(memcached)
	}
	if ref := s.NotificationBusSecretRef; ref != nil {
		bus, err := config.ParseMessageBus(in.Secret(ref.Name))
		if err != nil {
			return engine.Wait("Secret %s: %s", ref.Name, err)
		}
		c.NotificationBus(bus)
	}
	return nil
}

func addNeighbour(c *config.Connections, in engine.Inputs, described sharedv1.Neighbour, account string) error {
	if described.SecretRef != nil {
		account = described.SecretRef.Name
	}
	if account == "" {
		return nil
	}
	identity, err := config.ParseIdentity(in.Secret(account))
	if err != nil {
		return engine.Wait("Secret %s: %s", account, err)
	}
	neighbour{described, identity}.connect(c)
	return nil
}
