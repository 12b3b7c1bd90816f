package nova

import (
	"cmp"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// SharedConnections are the connections of a caller that all services of one control plane
// share.
type SharedConnections struct {
	sharedv1.SharedConnections
	caller Caller
}

// Connections returns the shared connections that the caller uses.
func (c Caller) Connections(shared sharedv1.SharedConnections) SharedConnections {
	if !c.limits {
		shared.UnifiedLimits = nil
	}
	return SharedConnections{shared, c}
}

// Needs are the Secrets of the connections.
func (s SharedConnections) Needs() []engine.Need {
	var accounts []string
	for _, to := range s.callsWith("") {
		accounts = append(accounts, to.secret)
	}
	if limits := s.UnifiedLimits; limits != nil && limits.AccountSecretRef != nil {
		accounts = append(accounts, limits.AccountSecretRef.Name)
	}
	var needs []engine.Need
	for _, account := range accounts {
		needs = append(needs, engine.SecretWithAny(account, config.IdentityKeys()...))
	}
	if s.MemcachedSecretRef != nil {
		needs = append(needs, engine.Secret(s.MemcachedSecretRef.Name, config.KeyHostname))
	}
	if s.NotificationBusSecretRef != nil {
		needs = append(needs, engine.Secret(s.NotificationBusSecretRef.Name, config.KeyHostname, config.KeyUser, config.KeyPassword))
	}
	return needs
}

// Defaults are the interfaces of the OpenStack services and the times of memcached, which a user
// may override. account
// names the identity Secret of the caller, "" for none.
func (s SharedConnections) Defaults(account string) config.Sections {
	var sections config.Sections
	for _, to := range s.callsWith(account) {
		of := clients[to.Name]
		sections.Set(of.section, of.internal.Name, of.internal.Value)
	}
	if s.MemcachedSecretRef != nil {
		sections.SetAll(config.MemcachedDefaults(s.caller.tokens))
	}
	return sections
}

// Connect adds the options of the connections. account names the identity Secret with which an
// OpenStack service without a Secret is called; "": such a service is left out.
func (s SharedConnections) Connect(c *config.Connections, in engine.Inputs, account string) error {
	if err := s.call(c, in, account); err != nil {
		return err
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

// call adds the accounts and endpoints of the OpenStack services, and the limits at Keystone.
// An account that states no region is used in the region of Nova's own account.
func (s SharedConnections) call(c *config.Connections, in engine.Inputs, account string) error {
	region := string(in.Secret(account)[config.KeyRegion])
	for _, to := range s.callsWith(account) {
		identity, err := identityOf(in, to.secret)
		if err != nil {
			return err
		}
		if stated := in.Secret(to.secret)[config.KeyRegion]; len(stated) == 0 {
			identity.Region = cmp.Or(region, identity.Region)
		}
		to.account = identity
		to.connect(c)
	}
	if s.UnifiedLimits == nil {
		return nil
	}
	secret := secretOf(s.UnifiedLimits.AccountSecretRef, account)
	if secret == "" {
		return nil
	}
	identity, err := identityOf(in, secret)
	if err != nil {
		return err
	}
	if identity.CredentialID != "" {
		return engine.Wait("Secret %s: unified limits are read at the scope of the system, which an application credential cannot have: name an account with user and password in unifiedLimits.accountSecretRef", secret)
	}
	unifiedLimits(c, identity, s.UnifiedLimits.EndpointID)
	return nil
}

// unifiedLimits lets Nova enforce the limits at Keystone.
func unifiedLimits(c *config.Connections, account config.Identity, endpointID string) {
	c.Limits(account, endpointID)
	c.Sections.Set("quota", "driver", "nova.quota.UnifiedLimitsDriver")
}

func identityOf(in engine.Inputs, secret string) (config.Identity, error) {
	identity, err := config.ParseIdentity(in.Secret(secret))
	if err != nil {
		return identity, engine.Wait("Secret %s: %s", secret, err)
	}
	return identity, nil
}
