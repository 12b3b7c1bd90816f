package workload

import (
	"cmp"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
)

// SharedConnectionNeeds are the Secrets of shared connections.
func SharedConnectionNeeds(shared commonv1.SharedConnections) []engine.Need {
	var needs []engine.Need
	for _, neighbour := range shared.Neighbours {
		if neighbour.SecretRef != nil {
			needs = append(needs, engine.Secret(neighbour.SecretRef.Name, config.KeyAuthURL, config.KeyUser, config.KeyPassword))
		}
	}
	if shared.MemcachedSecretRef != nil {
		needs = append(needs, engine.Secret(shared.MemcachedSecretRef.Name, config.KeyHostname))
	}
	if shared.NotificationBusSecretRef != nil {
		needs = append(needs, engine.Secret(shared.NotificationBusSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword))
	}
	return needs
}

// ConnectShared adds shared connections. account names the identity Secret with which a neighbour
// without a Secret is called; "": such a neighbour is left out.
func ConnectShared(c *config.Connections, in engine.Inputs, shared commonv1.SharedConnections, account string) error {
	for _, neighbour := range shared.Neighbours {
		if err := addNeighbour(c, in, neighbour, account); err != nil {
			return err
		}
	}
	if ref := shared.MemcachedSecretRef; ref != nil {
		memcached, err := config.ParseMemcached(in.Secret(ref.Name))
		if err != nil {
			return engine.Wait("Secret %s: %s", ref.Name, err)
		}
		c.Memcached(memcached)
	}
	if ref := shared.NotificationBusSecretRef; ref != nil {
		bus, err := config.ParseMessageBus(in.Secret(ref.Name))
		if err != nil {
			return engine.Wait("Secret %s: %s", ref.Name, err)
		}
		c.NotificationBus(bus)
	}
	return nil
}

func addNeighbour(c *config.Connections, in engine.Inputs, neighbour commonv1.Neighbour, account string) error {
	if neighbour.SecretRef != nil {
		account = neighbour.SecretRef.Name
	}
	if account == "" {
		return nil
	}
	identity, err := config.ParseIdentity(in.Secret(account))
	if err != nil {
		return engine.Wait("Secret %s: %s", account, err)
	}
	c.Neighbour(config.Neighbour{
		Name:        string(neighbour.Name),
		Account:     identity,
		Region:      neighbour.Region,
		Interface:   strings.ToLower(string(cmp.Or(neighbour.Interface, commonv1.InterfaceInternal))),
		ServiceType: neighbour.ServiceType,
		Endpoint:    neighbour.Endpoint,
		EndpointID:  neighbour.EndpointID,
	})
	return nil
}
