package config

import (
	"os"
	"testing"
)

// TestMain sets the domain of the cluster, independent of the machine.
func TestMain(m *testing.M) {
	_ = os.Setenv(EnvironmentClusterDomain, "cluster.local") // the tests would find a failure
	m.Run()
}

func TestClusterDomainOfAPod(t *testing.T) {
	for content, want := range map[string]string{
		"search openstack.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\n": "cluster.local",
		"nameserver 10.0.0.10\nsearch a.svc.k8s.example.org svc.k8s.example.org. example.org":        "k8s.example.org",
		"search example.org\n": "",
		"":                     "",
		"search svc.svc.cluster.local svc.cluster.local cluster.local\n": "cluster.local",
	} {
		if got := searchedDomain(content); got != want {
			t.Errorf("got %q of %q", got, content)
		}
	}
}

// TestNamesOfServicesAreComplete: the search list of a pod would begin with names that the
// owner of a namespace called svc can give to a pod.
func TestNamesOfServicesAreComplete(t *testing.T) {
	i, err := ParseIdentity(secret("authURL", "http://keystone.openstack.svc:5000/v3", "publicAuthURL", "https://keystone.example.org/v3", "user", "u", "password", "p"))
	if err != nil || i.AuthURL != "http://keystone.openstack.svc.cluster.local:5000/v3" || i.PublicAuthURL != "https://keystone.example.org/v3" {
		t.Errorf("got %+v, %v", i, err)
	}
	for host, want := range map[string]string{"a.b.SVC": "a.b.SVC.cluster.local", "b.svc": "b.svc", "svc": "svc"} {
		if got := completeHost(host); got != want {
			t.Errorf("%s became %s", host, got)
		}
	}
	if got := ServiceHost("openstack", "mariadb"); got != "mariadb.openstack.svc.cluster.local" {
		t.Errorf("got %s", got)
	}
}
