package config

import "cmp"

// Neighbour is the connection to another OpenStack service.
type Neighbour struct {
	Name        string   // a key of neighbours
	Account     Identity // with which the service is called
	Region      string   // default: that of the account
	Interface   string   // public or internal
	ServiceType string   // default: that of the client
	Endpoint    string   // URL that replaces the catalog, "" for none
	EndpointID  string   // of UnifiedLimits
}

// neighbours render the options of a neighbour, which the client libraries name differently.
var neighbours = map[string]func(*Connections, Neighbour){
	"Barbican":      (*Connections).barbican,
	"Cinder":        (*Connections).cinder,
	"Glance":        func(c *Connections, n Neighbour) { c.endpoint("glance", n) },
	"Ironic":        func(c *Connections, n Neighbour) { c.called("ironic", n) },
	"Neutron":       func(c *Connections, n Neighbour) { c.called("neutron", n) },
	"Placement":     func(c *Connections, n Neighbour) { c.called("placement", n) },
	"UnifiedLimits": (*Connections).unifiedLimits,
}

// Neighbour sets the account and the endpoint of a neighbour.
func (c *Connections) Neighbour(n Neighbour) {
	n.Region = cmp.Or(n.Region, n.Account.Region)
	neighbours[n.Name](c, n)
}

// called sets keystoneauth's options of the account and of the endpoint.
func (c *Connections) called(section string, n Neighbour) {
	c.Auth(section, n.Account)
	c.endpoint(section, n)
}

// endpoint sets keystoneauth's options of an endpoint that is called with any token.
func (c *Connections) endpoint(section string, n Neighbour) {
	c.Sections.Set(section, "region_name", n.Region)
	c.Sections.Set(section, "valid_interfaces", n.Interface)
	c.setUnlessEmpty(section, "service_type", n.ServiceType)
	c.setUnlessEmpty(section, "endpoint_override", n.Endpoint)
	if n.Endpoint == "" { // the authority of Keystone need not be that of another address
		c.setUnlessEmpty(section, "cafile", c.identityAuthority(section, n.Account.CA))
	}
}

// cinder sets the options of nova/conf/cinder.py, whose account is keystoneauth's and whose
// endpoint is not.
func (c *Connections) cinder(n Neighbour) {
	const section = "cinder"
	c.Auth(section, n.Account)
	c.Sections.Set(section, "os_region_name", n.Region)
	c.Sections.Set(section, "catalog_info", cmp.Or(n.ServiceType, "volumev3")+"::"+n.Interface+"URL")
	c.setUnlessEmpty(section, "endpoint_template", n.Endpoint)
}

// barbican sets the options of castellan, which calls Barbican with the token of the user
// and, as with every neighbour, with the token of the service.
func (c *Connections) barbican(n Neighbour) {
	const section = "barbican"
	c.Sections.Set(section, "auth_endpoint", n.Account.AuthURL)
	c.Sections.Set(section, "barbican_region_name", n.Region)
	c.Sections.Set(section, "barbican_endpoint_type", n.Interface)
	c.Sections.Set(section, "send_service_user_token", "true")
	c.setUnlessEmpty(section, "barbican_endpoint", n.Endpoint)
	c.setUnlessEmpty(section, "verify_ssl_path", c.identityAuthority(section, n.Account.CA))
	c.Auth("barbican_service_user", n.Account)
}

// unifiedLimits sets the options of oslo.limit, and the driver of Nova's quotas. Limits of
// every project are read at the system scope, which excludes a project of the account.
func (c *Connections) unifiedLimits(n Neighbour) {
	const section = "oslo_limit"
	c.login(section, n.Account, Setting{"system_scope", "all"})
	c.Sections.Set(section, "endpoint_id", n.EndpointID)
	c.Sections.Set("quota", "driver", "nova.quota.UnifiedLimitsDriver")
}

func (c *Connections) setUnlessEmpty(section, name, value string) {
	if value != "" {
		c.Sections.Set(section, name, value)
	}
}
