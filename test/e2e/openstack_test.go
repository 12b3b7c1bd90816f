package e2e

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// cloud is a connection to OpenStack as its administrator.
type cloud struct{ provider *gophercloud.ProviderClient }

const region = "RegionOne"

// httpClient connects to Services by their names, and accepts any certificate.
var httpClient = &http.Client{Transport: &http.Transport{
	DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the operators verify certificates
}}

// signIn signs in with the administrator's Secret of a namespace.
func signIn(ctx context.Context, namespace string) cloud {
	GinkgoHelper()
	admin := secret(ctx, namespace, "keystone-admin")
	return signInAs(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: admin["authURL"], Username: admin["user"], Password: admin["password"],
		DomainName: admin["userDomain"], TenantName: admin["project"], AllowReauth: true,
	})
}

func signInAs(ctx context.Context, account gophercloud.AuthOptions) cloud {
	GinkgoHelper()
	provider, err := openstack.NewClient(account.IdentityEndpoint)
	Expect(err).NotTo(HaveOccurred())
	provider.HTTPClient = *httpClient
	Expect(openstack.Authenticate(ctx, provider, account)).To(Succeed())
	return cloud{provider: provider}
}

func (c cloud) identity() *gophercloud.ServiceClient {
	GinkgoHelper()
	identity, err := openstack.NewIdentityV3(c.provider, gophercloud.EndpointOpts{Region: region})
	Expect(err).NotTo(HaveOccurred())
	return identity
}

func (c cloud) compute() *gophercloud.ServiceClient {
	GinkgoHelper()
	compute, err := openstack.NewComputeV2(c.provider, gophercloud.EndpointOpts{Region: region})
	Expect(err).NotTo(HaveOccurred())
	compute.Microversion = "2.37" // the first that can boot without a network
	return compute
}

// get reads JSON from the compute API.
func (c cloud) get(ctx context.Context, path string, into any) {
	GinkgoHelper()
	compute := c.compute()
	_, err := compute.Get(ctx, compute.ServiceURL(path), into, nil)
	Expect(err).NotTo(HaveOccurred())
}

// computeService is a row of `openstack compute service list`.
type computeService struct{ Binary, Host, State, Status, Zone string }

func (c cloud) services(ctx context.Context) []computeService {
	GinkgoHelper()
	var found struct{ Services []computeService }
	c.get(ctx, "os-services", &found)
	return found.Services
}

type server struct{ ID, Name string }

// activeServers lists the servers that are ACTIVE.
func (c cloud) activeServers(ctx context.Context) []server {
	GinkgoHelper()
	found, err := c.serversIn(ctx, "ACTIVE")
	Expect(err).NotTo(HaveOccurred())
	return found
}

// serversIn lists the servers in a status, without details that Nova reads from Neutron.
func (c cloud) serversIn(ctx context.Context, status string) ([]server, error) {
	compute := c.compute()
	var found struct{ Servers []server }
	_, err := compute.Get(ctx, compute.ServiceURL("servers?status="+status), &found, nil)
	return found.Servers, err
}

// endpoint is a row of `openstack endpoint list`.
type endpoint struct{ ID, Interface, Region, URL string }

func (c cloud) computeEndpoints(ctx context.Context) []endpoint { return c.endpoints(ctx, "compute") }

// endpoints lists the endpoints of a service type in all regions.
func (c cloud) endpoints(ctx context.Context, serviceType string) []endpoint {
	GinkgoHelper()
	identity := c.identity()
	var services struct{ Services []struct{ ID string } }
	_, err := identity.Get(ctx, identity.ServiceURL("services")+"?type="+serviceType, &services, nil)
	Expect(err).NotTo(HaveOccurred())
	var all []endpoint
	for _, service := range services.Services {
		var found struct{ Endpoints []endpoint }
		_, err := identity.Get(ctx, identity.ServiceURL("endpoints")+"?service_id="+service.ID, &found, nil)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, found.Endpoints...)
	}
	return all
}

// moveEndpoints gives the endpoints of a service type and an interface in the region another URL.
func (c cloud) moveEndpoints(ctx context.Context, serviceType, side, to string) {
	GinkgoHelper()
	identity, moved := c.identity(), 0
	for _, e := range c.endpoints(ctx, serviceType) {
		if e.Interface != side || e.Region != region {
			continue
		}
		change := map[string]any{"endpoint": map[string]any{"url": to}}
		_, err := identity.Patch(ctx, identity.ServiceURL("endpoints", e.ID), change, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
		Expect(err).NotTo(HaveOccurred())
		moved++
	}
	Expect(moved).To(BeNumerically(">", 0))
}
