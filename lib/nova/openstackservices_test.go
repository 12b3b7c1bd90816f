package nova

import (
	"slices"
	"strings"
	"testing"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

var account = config.Identity{
	AuthURL: "http://k:5000/v3", User: "u", Password: "p", Project: "service", UserDomain: "Default", ProjectDomain: "Default", Region: "R1", CA: []byte("CA"),
}

var expand = strings.NewReplacer(
	"ACCOUNT", "auth_type=password auth_url=http://k:5000/v3 username=u password=p user_domain_name=Default",
	"PROJECT", "project_domain_name=Default project_name=service cafile=/etc/nova/identity-ca.crt",
	"CAFILE", "cafile=/etc/nova/identity-ca.crt",
)

func TestOpenStackServices(t *testing.T) {
	const adapter = "ACCOUNT PROJECT region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1"
	all := map[sharedv1.OpenStackServiceName]string{ // options, in the order of the file
		"Barbican":  "barbican: auth_endpoint=http://k:5000/v3 barbican_region_name=R2 barbican_endpoint_type=public send_service_user_token=true barbican_endpoint=http://n:1 verify_ssl_path=/etc/nova/identity-ca.crt; barbican_service_user: ACCOUNT PROJECT",
		"Cinder":    "cinder: ACCOUNT PROJECT os_region_name=R2 catalog_info=special::publicURL endpoint_template=http://n:1",
		"Glance":    "glance: region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1",
		"Ironic":    "ironic: " + adapter,
		"Neutron":   "neutron: " + adapter,
		"Placement": "placement: " + adapter,
	}
	for name, want := range all {
		entry := sharedv1.OpenStackService{Name: name, RegionName: "R2", Interface: commonv1.InterfacePublic, ServiceType: "special", EndpointOverride: "http://n:1"}
		if got := connected(entry); got != expand.Replace(want) {
			t.Errorf("%s\n got %s\nwant %s", name, got, expand.Replace(want))
		}
	}
	if len(all) != len(clients) {
		t.Errorf("%d services are tested, %d exist", len(all), len(clients))
	}
}

// An entry without fields is what Nova does without an entry.
func TestEntryChangesOnlyWhatItStates(t *testing.T) {
	for _, c := range []struct {
		entry sharedv1.OpenStackService
		want  string
	}{
		{sharedv1.OpenStackService{Name: "Barbican"}, "barbican: auth_endpoint=http://k:5000/v3 barbican_region_name=R1 send_service_user_token=true verify_ssl_path=/etc/nova/identity-ca.crt; barbican_service_user: ACCOUNT PROJECT"},
		{sharedv1.OpenStackService{Name: "Cinder"}, "cinder: ACCOUNT PROJECT os_region_name=R1"},
		{sharedv1.OpenStackService{Name: "Cinder", Interface: commonv1.InterfacePublic}, "cinder: ACCOUNT PROJECT os_region_name=R1 catalog_info=volumev3::publicURL"},
		{sharedv1.OpenStackService{Name: "Cinder", ServiceType: "block-storage"}, "cinder: ACCOUNT PROJECT os_region_name=R1 catalog_info=block-storage::internalURL"},
		{sharedv1.OpenStackService{Name: "Glance"}, "glance: region_name=R1 CAFILE"},
		{sharedv1.OpenStackService{Name: "Neutron"}, "neutron: ACCOUNT PROJECT region_name=R1"},
		{sharedv1.OpenStackService{Name: "Placement", ServiceType: "special"}, "placement: ACCOUNT PROJECT region_name=R1 service_type=special"},
	} {
		if got := connected(c.entry); got != expand.Replace(c.want) {
			t.Errorf("%+v\n got %s\nwant %s", c.entry, got, expand.Replace(c.want))
		}
	}
}

func TestCallersHaveOnlyTheAccountsThatTheyUse(t *testing.T) {
	shared := sharedv1.SharedConnections{UnifiedLimits: &sharedv1.UnifiedLimits{EndpointID: "e"}}
	for name := range clients {
		shared.OpenStackServices = append(shared.OpenStackServices, sharedv1.OpenStackService{Name: name})
	}
	none := sharedv1.SharedConnections{}
	for name, c := range map[string]struct {
		caller         Caller
		always, listed string // sections
		limits         bool
	}{
		"API":       {API, "placement neutron glance cinder", "placement neutron glance cinder ironic barbican", true},
		"Compute":   {Compute, "placement neutron glance cinder", "placement neutron glance cinder ironic barbican", false},
		"Conductor": {Conductor, "placement neutron glance cinder", "placement neutron glance cinder", true},
		"Scheduler": {Scheduler, "placement neutron", "placement neutron", false},
		"Metadata":  {Metadata, "neutron", "neutron", false},
	} {
		for described, want := range map[*sharedv1.SharedConnections]string{&none: c.always, &shared: c.listed} {
			if got := sections(c.caller.Connections(*described).Defaults("nova")); got != want {
				t.Errorf("%s calls %s, want %s", name, got, want)
			}
		}
		if got := c.caller.Connections(shared).UnifiedLimits != nil; got != c.limits {
			t.Errorf("%s has limits: %t", name, got)
		}
	}
}

func TestServiceWithoutAnAccountCallsOnlyWithAccountsOfEntries(t *testing.T) {
	ref := &commonv1.SecretReference{Name: "placement"}
	conductor := Conductor.Connections(sharedv1.SharedConnections{OpenStackServices: []sharedv1.OpenStackService{{Name: "Cinder"}, {Name: "Placement", AccountSecretRef: ref}}})
	if got := oneLine(conductor.Defaults("")); got != "placement: valid_interfaces=internal" {
		t.Errorf("got %s", got)
	}
	if needs := conductor.Needs(); len(needs) != 1 {
		t.Errorf("%d needs", len(needs))
	}
	if needs := Metadata.Connections(conductor.SharedConnections).Needs(); len(needs) != 0 {
		t.Errorf("metadata needs %d Secrets, and does not call Placement", len(needs))
	}
}

func TestDefaultsAreInternal(t *testing.T) {
	const want = "placement: valid_interfaces=internal; neutron: valid_interfaces=internal; glance: valid_interfaces=internal; cinder: catalog_info=volumev3::internalURL"
	if got := oneLine(API.Connections(sharedv1.SharedConnections{}).Defaults("nova")); got != want {
		t.Errorf("got %s", got)
	}
}

// A memcached that is lost delays no request for long. Only the API validates tokens.
func TestMemcachedHasShortTimes(t *testing.T) {
	const cache, tokens = "cache: memcache_dead_retry=30 memcache_socket_timeout=0.5", "; keystone_authtoken: memcache_pool_dead_retry=30 memcache_pool_socket_timeout=1"
	shared := sharedv1.SharedConnections{MemcachedSecretRef: &commonv1.SecretReference{Name: "memcached"}}
	for want, caller := range map[string]Caller{cache + tokens: API, cache: Conductor} {
		if got := oneLine(caller.Connections(shared).Defaults("")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestServiceOfALaterReleaseIsLeftOut(t *testing.T) {
	later := sharedv1.SharedConnections{OpenStackServices: []sharedv1.OpenStackService{{Name: "Later"}}}
	if got := sections(Metadata.Connections(later).Defaults("nova")); got != "neutron" {
		t.Errorf("got %s", got)
	}
}

// What Nova finds with a token of a request, at a stated URL or with another account is not looked up.
func TestLookups(t *testing.T) {
	lookups := func(services ...sharedv1.OpenStackService) string {
		var all []string
		for _, lookup := range Lookups(sharedv1.SharedConnections{OpenStackServices: services}) {
			all = append(all, string(lookup.Name)+": "+lookup.String())
		}
		return strings.Join(all, "; ")
	}
	if got := lookups(); got != "Placement: placement, internal; Neutron: network, internal; Cinder: volumev3 or block-storage, internal" {
		t.Errorf("got %s", got)
	}
	got := lookups(
		sharedv1.OpenStackService{Name: "Placement", RegionName: "R2", Interface: commonv1.InterfacePublic},
		sharedv1.OpenStackService{Name: "Neutron", EndpointOverride: "http://n:1"},
		sharedv1.OpenStackService{Name: "Cinder", AccountSecretRef: &commonv1.SecretReference{Name: "cinder"}},
		sharedv1.OpenStackService{Name: "Ironic", ServiceType: "special"},
		sharedv1.OpenStackService{Name: "Barbican"},
	)
	if got != "Placement: placement, public, R2; Ironic: special, internal" {
		t.Errorf("got %s", got)
	}
	if got := lookups(sharedv1.OpenStackService{Name: "Placement", EndpointRevision: "by-hand"}); strings.Contains(got, "Placement") {
		t.Errorf("got %s", got)
	}
}

// A revision changes the configuration of the callers alone, and nothing that Nova reads.
func TestWithRevision(t *testing.T) {
	given := sharedv1.SharedConnections{OpenStackServices: []sharedv1.OpenStackService{{Name: "Placement", RegionName: "R2"}}}
	revised := WithRevision(WithRevision(given, "Placement", "1"), "Neutron", "2").OpenStackServices
	want := []sharedv1.OpenStackService{{Name: "Placement", RegionName: "R2", EndpointRevision: "1"}, {Name: "Neutron", EndpointRevision: "2"}}
	if !slices.Equal(revised, want) || given.OpenStackServices[0].EndpointRevision != "" {
		t.Errorf("%+v becomes %+v", given, revised)
	}
	if got := connected(revised[1]); got != expand.Replace("neutron: ACCOUNT PROJECT region_name=R1; asterism: neutron_endpoint_revision=2") {
		t.Errorf("got %s", got)
	}
}

func TestUnifiedLimits(t *testing.T) {
	c := config.NewConnections("/etc/nova")
	unifiedLimits(c, account, "e")
	want := expand.Replace("oslo_limit: ACCOUNT system_scope=all CAFILE endpoint_id=e; quota: driver=nova.quota.UnifiedLimitsDriver")
	if got := oneLine(c.Sections); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func connected(entry sharedv1.OpenStackService) string {
	c := config.NewConnections("/etc/nova")
	call{OpenStackService: entry, account: account}.connect(c)
	return oneLine(c.Sections)
}

func sections(s config.Sections) string {
	var names []string
	for _, section := range s {
		names = append(names, section.Name)
	}
	return strings.Join(names, " ")
}

func oneLine(sections config.Sections) string {
	var lines []string
	for _, section := range sections {
		line := section.Name + ":"
		for _, setting := range section.Settings {
			line += " " + setting.Name + "=" + setting.Value
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
