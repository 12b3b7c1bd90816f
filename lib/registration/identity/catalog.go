package identity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/regions"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// Catalog is the entry of a service in the catalog of one region.
type Catalog struct {
	ServiceType string            // such as compute
	ServiceName string            // such as nova; used for a new service entry only
	Region      string            // created if it is missing
	Endpoints   map[string]string // URL by interface: public, internal, admin
}

// maxURL is the length of a URL from the catalog that is not ignored, in bytes.
const maxURL = 2048

// Endpoint returns the URL in the catalog that the login has returned, without a request: of the first
// of the service types that has an endpoint of the interface in the region, which is by default that
// of the account. It is "" if there is none, or if it is not the URL of a service.
func (c *Client) Endpoint(types []string, availability, region string) string {
	login, ok := c.api.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	catalog, err := login.ExtractServiceCatalog()
	if err != nil {
		return ""
	}
	for _, wanted := range types {
		for _, service := range catalog.Entries {
			for _, endpoint := range service.Endpoints {
				isWanted := service.Type == wanted && endpoint.Interface == availability && cmp.Or(endpoint.RegionID, endpoint.Region) == cmp.Or(region, c.server.Region)
				if _, err := config.ParseWebAddress(endpoint.URL); isWanted && err == nil && len(endpoint.URL) <= maxURL {
					return endpoint.URL
				}
			}
		}
	}
	return ""
}

var regionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)

// EnsureCatalog creates, corrects and deletes endpoints of the service type in the region,
// until they are the endpoints of catalog, each with the mark. An endpoint of this service
// type in this region with another mark, or without a mark, is a remote.Conflict:
// then EnsureCatalog changes nothing.
func (c *Client) EnsureCatalog(ctx context.Context, catalog Catalog, mark remote.Mark) error {
	if !regionPattern.MatchString(catalog.Region) {
		return fmt.Errorf(`region %q must consist of letters, digits, ".", "_" and "-", and begin with a letter or digit`, catalog.Region)
	}
	entries, err := c.serviceEntries(ctx, catalog.ServiceType)
	if err != nil {
		return err
	}
	found, err := c.endpointsOf(ctx, entries)
	if err != nil {
		return err
	}
	inRegion := slices.DeleteFunc(slices.Clone(found), func(e endpoints.Endpoint) bool { return regionOf(e) != catalog.Region })
	for _, endpoint := range inRegion {
		if endpoint.Description != string(mark) {
			return &remote.Conflict{
				Address: c.address, Kind: "endpoint", Found: endpoint.Description, Want: mark,
				Name: fmt.Sprintf("%s %s of %s in region %s", remote.Quote(string(endpoint.Availability)), remote.Quote(endpoint.URL), catalog.ServiceType, catalog.Region),
			}
		}
	}
	if err := c.ensureRegion(ctx, catalog.Region, mark); err != nil {
		return err
	}
	service, err := c.ensureService(ctx, catalog, entries, mark)
	if err != nil {
		return err
	}
	return c.ensureEndpoints(ctx, catalog, service, inRegion, mark)
}

// serviceEntries returns the service entries of a type, ordered by ID, so that all
// installations use the same entry for their endpoints.
func (c *Client) serviceEntries(ctx context.Context, serviceType string) ([]services.Service, error) {
	query := services.ListOpts{ServiceType: serviceType}
	found, err := list(ctx, c, fmt.Sprintf("services of type %q", serviceType), services.List(c.api, query), services.ExtractServices)
	slices.SortFunc(found, func(a, b services.Service) int { return cmp.Compare(a.ID, b.ID) })
	return found, err
}

func (c *Client) endpointsOf(ctx context.Context, entries []services.Service) ([]endpoints.Endpoint, error) {
	var all []endpoints.Endpoint
	for _, entry := range entries {
		found, err := list(ctx, c, "endpoints", endpoints.List(c.api, endpoints.ListOpts{ServiceID: entry.ID}), endpoints.ExtractEndpoints)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func regionOf(endpoint endpoints.Endpoint) string { return cmp.Or(endpoint.RegionID, endpoint.Region) }

func (c *Client) ensureRegion(ctx context.Context, region string, mark remote.Mark) error {
	err := regions.Get(ctx, c.api, region).Err
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		err = regions.Create(ctx, c.api, regions.CreateOpts{ID: region, Description: string(mark)}).Err
		return c.failure(fmt.Sprintf("create region %q", region), err)
	}
	return c.failure(fmt.Sprintf("look for region %q", region), err)
}

// ensureService returns the ID of the entry for new endpoints.
func (c *Client) ensureService(ctx context.Context, catalog Catalog, entries []services.Service, mark remote.Mark) (string, error) {
	if len(entries) > 0 {
		return entries[0].ID, nil
	}
	created, err := services.Create(ctx, c.api, services.CreateOpts{
		Type: catalog.ServiceType, Name: catalog.ServiceName, Description: string(mark),
	}).Extract()
	if err != nil {
		return "", c.failure(fmt.Sprintf("create the service %q", catalog.ServiceName), err)
	}
	return created.ID, nil
}

// ensureEndpoints changes found, the endpoints with the mark in the region, into the
// endpoints of catalog.
func (c *Client) ensureEndpoints(ctx context.Context, catalog Catalog, service string, found []endpoints.Endpoint, mark remote.Mark) error {
	missing := maps.Clone(catalog.Endpoints)
	for _, endpoint := range found {
		wanted, ok := missing[string(endpoint.Availability)]
		delete(missing, string(endpoint.Availability)) // so a second endpoint of the interface is deleted
		if !ok {
			if err := c.deleteEndpoint(ctx, endpoint); err != nil {
				return err
			}
			continue
		}
		if endpoint.URL == wanted {
			continue
		}
		err := endpoints.Update(ctx, c.api, endpoint.ID, endpoints.UpdateOpts{URL: wanted}).Err
		if err != nil {
			return c.failure(fmt.Sprintf("change the %s endpoint of %q", remote.Quote(string(endpoint.Availability)), catalog.ServiceName), err)
		}
	}
	for _, availability := range slices.Sorted(maps.Keys(missing)) {
		err := endpoints.Create(ctx, c.api, endpoints.CreateOpts{
			Availability: gophercloud.Availability(availability), URL: missing[availability],
			Region: catalog.Region, ServiceID: service, Description: string(mark),
		}).Err
		if err != nil {
			return c.failure(fmt.Sprintf("create the %s endpoint of %q", availability, catalog.ServiceName), err)
		}
	}
	return nil
}

func (c *Client) deleteEndpoint(ctx context.Context, endpoint endpoints.Endpoint) error {
	err := endpoints.Delete(ctx, c.api, endpoint.ID).Err
	return c.failure(fmt.Sprintf("delete the %s endpoint %s", remote.Quote(string(endpoint.Availability)), remote.Quote(endpoint.URL)), unlessAbsent(err))
}

// DeleteCatalog deletes all endpoints of the service type that have the mark, in any
// region, and a service entry of this type that Asterism has created and that has no
// endpoint any more.
func (c *Client) DeleteCatalog(ctx context.Context, serviceType string, mark remote.Mark) error {
	entries, err := c.serviceEntries(ctx, serviceType)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		found, err := c.endpointsOf(ctx, []services.Service{entry})
		if err != nil {
			return err
		}
		others := len(found)
		for _, endpoint := range found {
			if endpoint.Description != string(mark) {
				continue
			}
			if err := c.deleteEndpoint(ctx, endpoint); err != nil {
				return err
			}
			others--
		}
		if others > 0 || !remote.IsMark(entry.Description) {
			continue
		}
		if err := unlessAbsent(services.Delete(ctx, c.api, entry.ID).Err); err != nil {
			return c.failure(fmt.Sprintf("delete the service %q", remote.Quote(entry.Name)), err)
		}
	}
	return nil
}

// CatalogAbsent returns whether no endpoint of the service type has the mark, and no
// service entry without endpoints has it.
func (c *Client) CatalogAbsent(ctx context.Context, serviceType string, mark remote.Mark) (bool, error) {
	entries, err := c.serviceEntries(ctx, serviceType)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		found, err := c.endpointsOf(ctx, []services.Service{entry})
		if err != nil {
			return false, err
		}
		if len(found) == 0 && entry.Description == string(mark) {
			return false, nil
		}
		if slices.ContainsFunc(found, func(e endpoints.Endpoint) bool { return e.Description == string(mark) }) {
			return false, nil
		}
	}
	return true, nil
}
