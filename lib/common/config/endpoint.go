package config

// Endpoint is where a service finds another service of the catalog.
type Endpoint struct {
	Region      string
	Interface   string // public or internal; default: that of the client
	ServiceType string // default: that of the client
	URL         string // replaces the catalog, "" for none
}

// Endpoint sets keystoneauth's options of an endpoint, in a section with or without an account.
// The catalog is read with the account i, or with the token of a user of the same Keystone.
func (c *Connections) Endpoint(section string, e Endpoint, i Identity) {
	c.Sections.Set(section, "region_name", e.Region)
	c.Sections.SetUnlessEmpty(section, "valid_interfaces", e.Interface)
	c.Sections.SetUnlessEmpty(section, "service_type", e.ServiceType)
	c.Sections.SetUnlessEmpty(section, "endpoint_override", e.URL)
	if e.URL == "" { // the authority of Keystone need not be that of another address
		c.Sections.SetUnlessEmpty(section, "cafile", c.IdentityAuthority(section, i.CA))
	}
}

// Limits sets the options of oslo.limit. Limits of every project are read at the system scope,
// which excludes a project of the account. They are registered for the endpoint with this ID.
func (c *Connections) Limits(i Identity, endpointID string) {
	const section = "oslo_limit"
	c.login(section, i, Setting{"system_scope", "all"})
	c.Sections.Set(section, "endpoint_id", endpointID)
}
