package nova

import (
	"cmp"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// neighbour is a service that Nova calls, with the account for the calls.
type neighbour struct {
	sharedv1.Neighbour
	account config.Identity
}

// neighbours render the options of a neighbour, which the client libraries name differently.
var neighbours = map[sharedv1.NeighbourName]func(*config.Connections, neighbour){
	sharedv1.NeighbourBarbican:      barbican,
	sharedv1.NeighbourCinder:        cinder,
	sharedv1.NeighbourGlance:        func(c *config.Connections, n neighbour) { c.Endpoint("glance", n.endpoint(), n.account) },
	sharedv1.NeighbourIronic:        called("ironic"),
	sharedv1.NeighbourNeutron:       called("neutron"),
	sharedv1.NeighbourPlacement:     called("placement"),
	sharedv1.NeighbourUnifiedLimits: unifiedLimits,
}

// connect sets the account and the endpoint of the neighbour. A later release may know more
// neighbours.
func (n neighbour) connect(c *config.Connections) {
	if render, known := neighbours[n.Name]; known {
		render(c, n)
	}
}

func (n neighbour) endpoint() config.Endpoint {
	return config.Endpoint{
		Region:      cmp.Or(n.Region, n.account.Region),
		Interface:   strings.ToLower(string(cmp.Or(n.Interface, commonv1.InterfaceInternal))),
		ServiceType: n.ServiceType,
		URL:         n.Endpoint,
	}
}

// called returns the options of a neighbour whose account and endpoint are keystoneauth's.
func called(section string) func(*config.Connections, neighbour) {
	return func(c *config.Connections, n neighbour) {
		c.Auth(section, n.account)
		c.Endpoint(section, n.endpoint(), n.account)
	}
}

// cinder sets the options of nova/conf/cinder.py, whose account is keystoneauth's and whose
// endpoint is not.
func cinder(c *config.Connections, n neighbour) {
	const section = "cinder"
	endpoint := n.endpoint()
	c.Auth(section, n.account)
	c.Sections.Set(section, "os_region_name", endpoint.Region)
	c.Sections.Set(section, "catalog_info", cmp.Or(endpoint.ServiceType, "volumev3")+"::"+endpoint.Interface+"URL")
	c.Sections.SetUnlessEmpty(section, "endpoint_template", endpoint.URL)
}

// barbican sets the options of castellan, which calls Barbican with the token of the user
// and, as with every neighbour, with the token of the service.
func barbican(c *config.Connections, n neighbour) {
	const section = "barbican"
	endpoint := n.endpoint()
	c.Sections.Set(section, "auth_endpoint", n.account.AuthURL)
	c.Sections.Set(section, "barbican_region_name", endpoint.Region)
	c.Sections.Set(section, "barbican_endpoint_type", endpoint.Interface)
	c.Sections.Set(section, "send_service_user_token", "true")
	c.Sections.SetUnlessEmpty(section, "barbican_endpoint", endpoint.URL)
	c.Sections.SetUnlessEmpty(section, "verify_ssl_path", c.IdentityAuthority(section, n.account.CA))
	c.Auth("barbican_service_user", n.account)
}

// unifiedLimits lets Nova enforce the limits at Keystone.
func unifiedLimits(c *config.Connections, n neighbour) {
	c.Limits(n.account, n.EndpointID)
	c.Sections.Set("quota", "driver", "nova.quota.UnifiedLimitsDriver")
}
