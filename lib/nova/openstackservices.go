package nova

import (
	"cmp"
	"slices"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

// Caller is a service of Nova that calls other OpenStack services. It has no account for a
// service that it does not call.
type Caller struct {
	calls  []sharedv1.OpenStackServiceName
	limits bool // it enforces limits
	tokens bool // it validates tokens
}

// Callers, and what their code calls (nova: compute/api.py, api/openstack/compute,
// compute/manager.py, conductor/manager.py, conductor/tasks, scheduler/manager.py,
// scheduler/request_filter.py, api/metadata).
var (
	API = Caller{limits: true, tokens: true, calls: []sharedv1.OpenStackServiceName{
		sharedv1.OpenStackPlacement, sharedv1.OpenStackNeutron, sharedv1.OpenStackGlance, sharedv1.OpenStackCinder, sharedv1.OpenStackIronic, sharedv1.OpenStackBarbican,
	}}
	Compute   = Caller{calls: API.calls}
	Conductor = Caller{limits: true, calls: []sharedv1.OpenStackServiceName{
		sharedv1.OpenStackPlacement, sharedv1.OpenStackNeutron, sharedv1.OpenStackGlance, sharedv1.OpenStackCinder,
	}}
	Scheduler = Caller{calls: []sharedv1.OpenStackServiceName{sharedv1.OpenStackPlacement, sharedv1.OpenStackNeutron}}
	Metadata  = Caller{calls: []sharedv1.OpenStackServiceName{sharedv1.OpenStackNeutron}}
)

// client has the options by which Nova calls an OpenStack service, which the client libraries
// name differently.
type client struct {
	// byEntry is true if Nova only calls the service with an entry.
	byEntry bool
	// types are the names of the service in the catalog, the first that a catalog has, if processes
	// keep its endpoint with a token of their own. Glance and Barbican are called with the token of
	// a request, which has its own catalog.
	types []string
	// section and internal are the option of the default interface.
	section  string
	internal config.Setting
	connect  func(*config.Connections, call)
}

var clients = map[sharedv1.OpenStackServiceName]client{
	sharedv1.OpenStackBarbican:  {true, nil, "barbican", config.Setting{Name: "barbican_endpoint_type", Value: "internal"}, barbican},
	sharedv1.OpenStackCinder:    {false, []string{"volumev3", "block-storage"}, "cinder", config.Setting{Name: "catalog_info", Value: "volumev3::internalURL"}, cinder},
	sharedv1.OpenStackGlance:    {false, nil, "glance", internal, func(c *config.Connections, to call) { c.Endpoint("glance", to.endpoint(), to.account) }},
	sharedv1.OpenStackIronic:    {true, []string{"baremetal"}, "ironic", internal, adapter("ironic")},
	sharedv1.OpenStackNeutron:   {false, []string{"network"}, "neutron", internal, adapter("neutron")},
	sharedv1.OpenStackPlacement: {false, []string{"placement"}, "placement", internal, adapter("placement")},
}

var internal = config.Setting{Name: "valid_interfaces", Value: "internal"}

// call is a service that Nova calls, and the account for it.
type call struct {
	sharedv1.OpenStackService
	secret  string
	account config.Identity
}

// callsWith returns what the caller calls with the account of a Secret, "" for none, or with
// accounts of the entries.
func (s SharedConnections) callsWith(secret string) []call {
	var calls []call
	for _, name := range s.caller.calls {
		entry := sharedv1.OpenStackService{Name: name}
		i := slices.IndexFunc(s.OpenStackServices, func(o sharedv1.OpenStackService) bool { return o.Name == name })
		if i >= 0 {
			entry = s.OpenStackServices[i]
		} else if clients[name].byEntry {
			continue
		}
		if of := secretOf(entry.AccountSecretRef, secret); of != "" {
			calls = append(calls, call{OpenStackService: entry, secret: of})
		}
	}
	return calls
}

// Lookup finds the endpoint of an OpenStack service in a catalog.
type Lookup struct {
	Name      sharedv1.OpenStackServiceName
	Types     []string // the first that the catalog has
	Interface string   // internal or public
	Region    string   // "": that of the account
}

// String describes the lookup in a status.
func (l Lookup) String() string {
	return strings.TrimSuffix(strings.Join(l.Types, " or ")+", "+l.Interface+", "+l.Region, ", ")
}

// Lookups are those of the services whose endpoint Nova's processes find with Nova's own account, and
// keep. A user who states an endpointRevision restarts the callers himself.
func Lookups(shared sharedv1.SharedConnections) []Lookup {
	var all []Lookup
	for _, to := range API.Connections(shared).callsWith("own") {
		types := clients[to.Name].types
		if len(types) == 0 || to.AccountSecretRef != nil || to.EndpointOverride != "" || to.EndpointRevision != "" {
			continue
		}
		if to.ServiceType != "" {
			types = []string{to.ServiceType}
		}
		all = append(all, Lookup{
			Name: to.Name, Types: types, Region: to.RegionName,
			Interface: strings.ToLower(string(cmp.Or(to.Interface, commonv1.InterfaceInternal))),
		})
	}
	return all
}

// WithRevision returns the connections with an endpointRevision of a service.
func WithRevision(shared sharedv1.SharedConnections, name sharedv1.OpenStackServiceName, revision string) sharedv1.SharedConnections {
	shared.OpenStackServices = slices.Clone(shared.OpenStackServices)
	i := slices.IndexFunc(shared.OpenStackServices, func(o sharedv1.OpenStackService) bool { return o.Name == name })
	if i < 0 {
		i = len(shared.OpenStackServices)
		shared.OpenStackServices = append(shared.OpenStackServices, sharedv1.OpenStackService{Name: name})
	}
	shared.OpenStackServices[i].EndpointRevision = revision
	return shared
}

func secretOf(ref *commonv1.SecretReference, secret string) string {
	if ref != nil {
		return ref.Name
	}
	return secret
}

// revisions is a section that Nova does not read: a change of an endpointRevision changes the
// configuration of the callers, and so restarts them.
const revisions = "asterism"

// connect adds the options of the service.
func (to call) connect(c *config.Connections) {
	clients[to.Name].connect(c, to)
	c.Sections.SetUnlessEmpty(revisions, strings.ToLower(string(to.Name))+"_endpoint_revision", to.EndpointRevision)
}

// endpoint leaves out the interface that the default sets.
func (to call) endpoint() config.Endpoint {
	return config.Endpoint{
		Region:      cmp.Or(to.RegionName, to.account.Region),
		Interface:   strings.ToLower(string(to.Interface)),
		ServiceType: to.ServiceType,
		URL:         to.EndpointOverride,
	}
}

// adapter returns the options of a service whose account and endpoint are keystoneauth's.
func adapter(section string) func(*config.Connections, call) {
	return func(c *config.Connections, to call) {
		c.Auth(section, to.account)
		c.Endpoint(section, to.endpoint(), to.account)
	}
}

// cinder sets the options of nova/conf/cinder.py, whose account is keystoneauth's and whose
// endpoint is not.
func cinder(c *config.Connections, to call) {
	const section = "cinder"
	endpoint := to.endpoint()
	c.Auth(section, to.account)
	c.Sections.Set(section, "os_region_name", endpoint.Region)
	if endpoint.Interface != "" || endpoint.ServiceType != "" { // one option for both
		c.Sections.Set(section, "catalog_info", cmp.Or(endpoint.ServiceType, "volumev3")+"::"+cmp.Or(endpoint.Interface, "internal")+"URL")
	}
	c.Sections.SetUnlessEmpty(section, "endpoint_template", endpoint.URL)
}

// barbican sets the options of castellan, which calls Barbican with the token of the user
// and, as with every service, with the token of the service.
func barbican(c *config.Connections, to call) {
	const section = "barbican"
	endpoint := to.endpoint()
	c.Sections.Set(section, "auth_endpoint", to.account.AuthURL)
	c.Sections.Set(section, "barbican_region_name", endpoint.Region)
	c.Sections.SetUnlessEmpty(section, "barbican_endpoint_type", endpoint.Interface)
	c.Sections.Set(section, "send_service_user_token", "true")
	c.Sections.SetUnlessEmpty(section, "barbican_endpoint", endpoint.URL)
	c.Sections.SetUnlessEmpty(section, "verify_ssl_path", c.IdentityAuthority(section, to.account.CA))
	c.Auth("barbican_service_user", to.account)
}
