//go:build e2e

// Tests against a real Keystone, whose address and account these variables have:
//
//	ASTERISM_KEYSTONE_URL       http(s)://host:port[/v3]
//	ASTERISM_KEYSTONE_USER      an account with the role admin in the project admin, domain Default
//	ASTERISM_KEYSTONE_PASSWORD  its password
//	ASTERISM_KEYSTONE_CA_FILE   optional: the CA (PEM) to trust
//
// The tests create users, projects, roles, regions and services with random names and
// types, and delete them.

package identity

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/regions"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

const otherMark = remote.Mark("asterism c/openstack/other")

func realServer(t *testing.T) Server {
	t.Helper()
	return Server{
		AuthURL:  registrationtest.Env(t, "ASTERISM_KEYSTONE_URL"),
		User:     registrationtest.Env(t, "ASTERISM_KEYSTONE_USER"),
		Password: config.Password(registrationtest.Env(t, "ASTERISM_KEYSTONE_PASSWORD")),
		CA:       registrationtest.CAFile(t, "ASTERISM_KEYSTONE_CA_FILE"),
	}
}

func connect(t *testing.T, server Server) *Client {
	t.Helper()
	client, err := Connect(registrationtest.Context(t), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recorded returns a client of the real server, the writes of the client, and a name. It
// deletes every object with this name, type or ID after the test.
func recorded(t *testing.T) (*Client, *registrationtest.Writes, string) {
	t.Helper()
	server, name := realServer(t), registrationtest.Name(t, "nova")
	direct := connect(t, server)
	t.Cleanup(func() { remove(t, direct, name) })
	proxy, writes := registrationtest.RecordWrites(t, strings.TrimSuffix(server.AuthURL, "/v3"), server.CA)
	server.AuthURL = proxy
	return connect(t, server), writes, name
}

func remove(t *testing.T, client *Client, name string) {
	t.Helper()
	ctx := context.Background()
	if found, err := client.findUser(ctx, name); err == nil && found != nil {
		must(t, users.Delete(ctx, client.api, found.ID).Err)
	}
	entries, err := client.serviceEntries(ctx, name)
	must(t, err)
	for _, entry := range entries {
		must(t, services.Delete(ctx, client.api, entry.ID).Err)
	}
	pages, err := projects.List(client.api, projects.ListOpts{Name: name}).AllPages(ctx)
	must(t, err)
	foundProjects, err := projects.ExtractProjects(pages)
	must(t, err)
	for _, project := range foundProjects {
		must(t, projects.Delete(ctx, client.api, project.ID).Err)
	}
	pages, err = roles.List(client.api, roles.ListOpts{Name: name}).AllPages(ctx)
	must(t, err)
	foundRoles, err := roles.ExtractRoles(pages)
	must(t, err)
	for _, role := range foundRoles {
		must(t, roles.Delete(ctx, client.api, role.ID).Err)
	}
	for _, region := range []string{name, name + "2"} {
		if regions.Get(ctx, client.api, region).Err == nil {
			must(t, regions.Delete(ctx, client.api, region).Err)
		}
	}
}

// kinds returns writes as "METHOD collection".
func kinds(writes *registrationtest.Writes) []string {
	var kinds []string
	for _, write := range writes.Take() {
		parts := strings.Split(strings.Replace(write, " /v3/", " ", 1), "/")
		kind := parts[0]
		if strings.Contains(write, "/roles/") {
			kind += " role assignment"
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func wrote(t *testing.T, writes *registrationtest.Writes, want ...string) {
	t.Helper()
	if got := kinds(writes); !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// novaUser returns a user with an existing and a new role, in a new project.
func novaUser(name string) User {
	return User{Name: name, Password: password, Project: name, Roles: []string{"admin", name}}
}

// canLogIn returns whether the user gets a token for its project.
func canLogIn(t *testing.T, user User) bool {
	t.Helper()
	server := realServer(t)
	server.User, server.Password, server.Project = user.Name, user.Password, user.Project
	client, err := Connect(registrationtest.Context(t), server)
	if err == nil {
		client.Close()
		return true
	}
	if refused, ok := errors.AsType[*remote.Denied](err); !ok || refused.Account != user.Name {
		t.Fatalf("got %v", err)
	}
	registrationtest.MustNotTell(t, err, user.Password)
	return false
}

func TestUserIsCreatedOnceWithItsMark(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := novaUser(name)
	must(t, client.EnsureUser(ctx, user, mark))
	wrote(t, writes, "POST users", "POST projects", "PUT projects role assignment", "POST roles", "PUT projects role assignment")
	for range 2 {
		must(t, client.EnsureUser(ctx, user, mark))
	}
	wrote(t, writes)
	if !canLogIn(t, user) {
		t.Error("the user cannot log in")
	}
	found, err := client.findUser(ctx, name)
	must(t, err)
	if found.Description != string(mark) || found.Options["ignore_password_expiry"] != true {
		t.Errorf("user %+v", found)
	}
}

func TestUserIsDeleted(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	absent := func() bool {
		absent, err := client.UserAbsent(ctx, name, mark)
		must(t, err)
		return absent
	}
	if !absent() {
		t.Error("the user exists before its creation")
	}
	must(t, client.EnsureUser(ctx, novaUser(name), mark))
	if absent() {
		t.Error("the user is absent after its creation")
	}
	writes.Take()
	for range 2 {
		must(t, client.DeleteUser(ctx, name, mark))
	}
	wrote(t, writes, "DELETE users")
	if !absent() {
		t.Error("the user exists after its deletion")
	}
}

func TestForeignUserIsAConflictAndStays(t *testing.T) {
	t.Parallel()
	for _, found := range []string{"", string(otherMark), "created manually"} {
		client, writes, name := recorded(t)
		ctx := registrationtest.Context(t)
		domain, err := client.domainID(ctx)
		must(t, err)
		must(t, users.Create(ctx, client.api, users.CreateOpts{Name: name, DomainID: domain, Password: "other", Description: found}).Err)
		writes.Take()
		err = client.EnsureUser(ctx, novaUser(name), mark)
		conflict, ok := errors.AsType[*remote.Conflict](err)
		if !ok || conflict.Kind != "Keystone user" || conflict.Name != name || conflict.Found != found || conflict.Want != mark {
			t.Errorf("got %v", err)
		}
		must(t, client.DeleteUser(ctx, name, mark))
		wrote(t, writes)
	}
}

func TestDamagedUserIsRepaired(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := novaUser(name)
	must(t, client.EnsureUser(ctx, user, mark))
	found, err := client.findUser(ctx, name)
	must(t, err)
	project, err := client.ensureProject(ctx, user, mark)
	must(t, err)
	role, err := client.ensureRole(ctx, name, mark)
	must(t, err)
	for _, test := range []struct {
		damage func() error
		repair string
	}{
		{func() error { return users.Update(ctx, client.api, found.ID, users.UpdateOpts{Password: "other"}).Err }, "PATCH users"},
		{func() error {
			return users.Update(ctx, client.api, found.ID, users.UpdateOpts{Enabled: new(false)}).Err
		}, "PATCH users"},
		{func() error {
			return roles.Unassign(ctx, client.api, role, roles.UnassignOpts{UserID: found.ID, ProjectID: project}).Err
		}, "PUT projects role assignment"},
	} {
		must(t, test.damage())
		writes.Take()
		must(t, client.EnsureUser(ctx, user, mark))
		wrote(t, writes, test.repair)
		if !canLogIn(t, user) {
			t.Errorf("after %s the user cannot log in", test.repair)
		}
	}
}

func TestAnyPasswordWorks(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	for _, password := range registrationtest.Passwords(t, 0)[:6] { // Keystone needs long for a change of a password
		user := novaUser(name)
		user.Password = password
		must(t, client.EnsureUser(ctx, user, mark))
		writes.Take()
		must(t, client.EnsureUser(ctx, user, mark))
		wrote(t, writes)
		if !canLogIn(t, user) {
			t.Errorf("%q is not the password", string(password))
		}
	}
	user := novaUser(name)
	user.Password = "n0t-1t"
	if canLogIn(t, user) {
		t.Error("a wrong password works: this test proves nothing")
	}
}

func novaCatalog(name string) Catalog {
	return Catalog{
		ServiceType: name, ServiceName: "nova", Region: name,
		Endpoints: map[string]string{"public": "https://nova.example.org/v2.1", "internal": "http://demo-api.openstack.svc:8774/v2.1"},
	}
}

// published returns the URLs of the endpoints in a region by interface, and their marks.
func published(t *testing.T, client *Client, catalog Catalog) (urls map[string]string, marks []string) {
	t.Helper()
	ctx := registrationtest.Context(t)
	entries, err := client.serviceEntries(ctx, catalog.ServiceType)
	must(t, err)
	found, err := client.endpointsOf(ctx, entries)
	must(t, err)
	urls = map[string]string{}
	for _, endpoint := range found {
		if regionOf(endpoint) == catalog.Region {
			urls[string(endpoint.Availability)] = endpoint.URL
			marks = append(marks, endpoint.Description)
		}
	}
	return urls, marks
}

func TestEndpointsAreCreatedOnceAndUpdated(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	catalog := novaCatalog(name)
	update := func(want ...string) {
		t.Helper()
		for range 2 {
			must(t, client.EnsureCatalog(ctx, catalog, mark))
		}
		wrote(t, writes, want...)
		urls, marks := published(t, client, catalog)
		if !maps.Equal(urls, catalog.Endpoints) {
			t.Errorf("published %q, want %q", urls, catalog.Endpoints)
		}
		for _, found := range marks {
			if found != string(mark) {
				t.Errorf("mark %q", found)
			}
		}
	}
	update("POST regions", "POST services", "POST endpoints", "POST endpoints")
	catalog.Endpoints["public"] = "https://other.example.org/v2.1"
	update("PATCH endpoints")
	catalog.Endpoints["admin"] = "http://admin.example.org/v2.1"
	update("POST endpoints")
	delete(catalog.Endpoints, "admin")
	update("DELETE endpoints")
}

func TestSecondNovaInTheRegionIsAConflict(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	catalog := novaCatalog(name)
	must(t, client.EnsureCatalog(ctx, catalog, otherMark))
	writes.Take()
	second := novaCatalog(name)
	second.Endpoints = map[string]string{"admin": "http://second.example.org"}
	err := client.EnsureCatalog(ctx, second, mark)
	conflict, ok := errors.AsType[*remote.Conflict](err)
	if !ok || conflict.Kind != "endpoint" || conflict.Found != string(otherMark) || !strings.Contains(conflict.Name, "region "+name) {
		t.Errorf("got %v", err)
	}
	must(t, client.DeleteCatalog(ctx, name, mark))
	wrote(t, writes)
	if urls, _ := published(t, client, catalog); !maps.Equal(urls, catalog.Endpoints) {
		t.Errorf("the endpoints of the first Nova became %q", urls)
	}
}

func TestEndpointWithoutAMarkIsAConflict(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	entry, err := services.Create(ctx, client.api, services.CreateOpts{Type: name, Name: "nova"}).Extract()
	must(t, err)
	must(t, endpoints.Create(ctx, client.api, endpoints.CreateOpts{
		Availability: "public", Region: name, URL: "http://manual.example", ServiceID: entry.ID,
	}).Err)
	writes.Take()
	err = client.EnsureCatalog(ctx, novaCatalog(name), mark)
	conflict, ok := errors.AsType[*remote.Conflict](err)
	if !ok || conflict.Found != "" || !strings.Contains(conflict.Name, "http://manual.example") {
		t.Errorf("got %v", err)
	}
	must(t, client.DeleteCatalog(ctx, name, mark))
	wrote(t, writes)
}

func TestServiceEntryIsDeletedWithTheLastRegion(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	first, second := novaCatalog(name), novaCatalog(name)
	second.Region = name + "2"
	absent := func(mark remote.Mark) bool {
		absent, err := client.CatalogAbsent(ctx, name, mark)
		must(t, err)
		return absent
	}
	if !absent(mark) || !absent(otherMark) {
		t.Error("the catalog exists before its creation")
	}
	must(t, client.EnsureCatalog(ctx, first, mark))
	must(t, client.EnsureCatalog(ctx, second, otherMark))
	entries, err := client.serviceEntries(ctx, name)
	must(t, err)
	if len(entries) != 1 || absent(mark) || absent(otherMark) {
		t.Errorf("%d service entries", len(entries))
	}

	writes.Take()
	for range 2 {
		must(t, client.DeleteCatalog(ctx, name, mark))
	}
	wrote(t, writes, "DELETE endpoints", "DELETE endpoints")
	if !absent(mark) || absent(otherMark) {
		t.Error("the endpoints of the wrong mark were deleted")
	}
	if urls, _ := published(t, client, second); !maps.Equal(urls, second.Endpoints) {
		t.Errorf("the endpoints of the other region became %q", urls)
	}

	for range 2 {
		must(t, client.DeleteCatalog(ctx, name, otherMark))
	}
	wrote(t, writes, "DELETE endpoints", "DELETE endpoints", "DELETE services")
	if !absent(otherMark) {
		t.Error("the catalog exists after its deletion")
	}
}

func TestServiceEntryWithoutAMarkIsUsedAndNotDeleted(t *testing.T) {
	t.Parallel()
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	must(t, services.Create(ctx, client.api, services.CreateOpts{Type: name, Name: "nova", Description: "Compute"}).Err)
	writes.Take()
	must(t, client.EnsureCatalog(ctx, novaCatalog(name), mark))
	wrote(t, writes, "POST regions", "POST endpoints", "POST endpoints")
	must(t, client.DeleteCatalog(ctx, name, mark))
	wrote(t, writes, "DELETE endpoints", "DELETE endpoints")
	absent, err := client.CatalogAbsent(ctx, name, mark)
	if !absent || err != nil {
		t.Error(absent, err)
	}
}

func TestWrongPasswordIsDeniedAndNotInTheError(t *testing.T) {
	t.Parallel()
	server := realServer(t)
	server.Password = password
	_, err := Connect(registrationtest.Context(t), server)
	refused, ok := errors.AsType[*remote.Denied](err)
	if !ok || refused.Account != server.User {
		t.Errorf("got %v", err)
	}
	registrationtest.MustNotTell(t, err, password)
}

func TestApplicationCredentialLogsIn(t *testing.T) {
	t.Parallel()
	client, _, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := novaUser(name)
	must(t, client.EnsureUser(ctx, user, mark))
	server := realServer(t)
	server.User, server.Password, server.Project = user.Name, user.Password, user.Project
	ofUser := connect(t, server)
	found, err := client.findUser(ctx, name)
	must(t, err)
	created, err := applicationcredentials.Create(ctx, ofUser.api, found.ID, applicationcredentials.CreateOpts{Name: name, Secret: string(password)}).Extract()
	must(t, err)

	server = Server{AuthURL: server.AuthURL, CA: server.CA, CredentialID: created.ID, CredentialSecret: password}
	if connect(t, server).Token() == "" {
		t.Error("no token")
	}
	server.CredentialSecret = "another-" + password
	_, err = Connect(ctx, server)
	if refused, ok := errors.AsType[*remote.Denied](err); !ok || refused.Account != created.ID {
		t.Errorf("got %v", err)
	}
	registrationtest.MustNotTell(t, err, server.CredentialSecret)
}

func TestUnprivilegedAccountIsDenied(t *testing.T) {
	t.Parallel()
	client, _, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := novaUser(name)
	user.Roles = []string{name}
	must(t, client.EnsureUser(ctx, user, mark))
	server := realServer(t)
	server.User, server.Password, server.Project = user.Name, user.Password, user.Project
	err := connect(t, server).EnsureUser(ctx, User{Name: "x" + name, Password: password}, mark)
	refused, ok := errors.AsType[*remote.Denied](err)
	if !ok || refused.Account != name {
		t.Errorf("got %v", err)
	}
}
