package nova

import (
	"strings"
	"testing"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	sharedv1 "asterism.dev/lib/nova/api/v1alpha1"
)

var account = config.Identity{
	AuthURL: "http://k:5000/v3", User: "u", Password: "p", Project: "service", UserDomain: "Default", ProjectDomain: "Default", Region: "R1", CA: []byte("CA"),
}

func TestNeighbours(t *testing.T) {
	all := map[sharedv1.NeighbourName]string{ // options, in the order of the file
		"Barbican":      "barbican: auth_endpoint=http://k:5000/v3 barbican_region_name=R2 barbican_endpoint_type=public send_service_user_token=true barbican_endpoint=http://n:1 verify_ssl_path=/etc/nova/identity-ca.crt; barbican_service_user: ACCOUNT PROJECT",
		"Cinder":        "cinder: ACCOUNT PROJECT os_region_name=R2 catalog_info=special::publicURL endpoint_template=http://n:1",
		"Glance":        "glance: region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1",
		"Ironic":        "ironic: CALLED",
		"Neutron":       "neutron: CALLED",
		"Placement":     "placement: CALLED",
		"UnifiedLimits": "oslo_limit: ACCOUNT system_scope=all CAFILE endpoint_id=e; quota: driver=nova.quota.UnifiedLimitsDriver",
	}
	const called = "ACCOUNT PROJECT region_name=R2 valid_interfaces=public service_type=special endpoint_override=http://n:1"
	expand := strings.NewReplacer(
		"ACCOUNT", "auth_type=password auth_url=http://k:5000/v3 username=u password=p user_domain_name=Default",
		"PROJECT", "project_domain_name=Default project_name=service cafile=/etc/nova/identity-ca.crt",
		"CAFILE", "cafile=/etc/nova/identity-ca.crt",
	)
	for name, want := range all {
		want = expand.Replace(strings.ReplaceAll(want, "CALLED", called))
		got := connected(sharedv1.Neighbour{Name: name, Region: "R2", Interface: commonv1.InterfacePublic, ServiceType: "special", Endpoint: "http://n:1", EndpointID: "e"})
		if oneLine(got) != want {
			t.Errorf("%s\n got %s\nwant %s", name, oneLine(got), want)
		}
	}
	if len(all) != len(neighbours) {
		t.Errorf("%d neighbours are tested, %d exist", len(all), len(neighbours))
	}
}

func TestNeighbourDefaults(t *testing.T) {
	sections := connected(sharedv1.Neighbour{Name: sharedv1.NeighbourCinder})
	for option, want := range map[string]string{"os_region_name": "R1", "catalog_info": "volumev3::internalURL", "endpoint_template": ""} {
		if got := sections.Get("cinder", option); got != want {
			t.Errorf("%s is %q, want %q", option, got, want)
		}
	}
}

func TestNeighbourOfALaterReleaseIsLeftOut(t *testing.T) {
	if got := connected(sharedv1.Neighbour{Name: "Later"}); len(got) > 0 {
		t.Errorf("got %s", oneLine(got))
	}
}

func connected(described sharedv1.Neighbour) config.Sections {
	c := config.NewConnections("/etc/nova")
	neighbour{described, account}.connect(c)
	return c.Sections
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
