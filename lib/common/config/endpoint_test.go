package config

import "testing"

func TestAccountsHaveAuthoritiesOfTheirOwn(t *testing.T) {
	c := NewConnections("/etc/project")
	c.ServiceUser(identityOf(t, "ca.crt", certificate))
	c.Endpoint("inventory", Endpoint{Region: "R1", Interface: "internal"}, identityOf(t, "ca.crt", certificate))
	c.Endpoint("fabric", Endpoint{Region: "R1", Interface: "internal"}, identityOf(t, "ca.crt", certificate+certificate))
	for section, want := range map[string]string{"service_user": "identity", "inventory": "identity", "fabric": "fabric"} {
		if got := c.Sections.Get(section, "cafile"); got != "/etc/project/"+want+"-ca.crt" {
			t.Errorf("[%s] cafile = %s", section, got)
		}
	}
}

func TestEndpointOutsideOfTheCatalogHasNoAuthorityOfKeystone(t *testing.T) {
	c := NewConnections("/etc/project")
	c.Endpoint("inventory", Endpoint{Region: "R1", Interface: "public", ServiceType: "special", URL: "http://n:1"}, identityOf(t, "ca.crt", certificate))
	const want = "inventory: region_name=R1 valid_interfaces=public service_type=special endpoint_override=http://n:1"
	if got := oneLine(c.Sections); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
