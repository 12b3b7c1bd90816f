package backend

import (
	"context"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	"asterism.dev/operators/nova/internal/identity"
)

// Identity is a Keystone. A Backend of this kind is a user.
type Identity struct {
	// Region of the endpoints.
	Region string
}

const (
	serviceProject = "service"
	serviceType    = "compute"
	serviceName    = "nova"
)

// roles of the user: admin is for requests to other services, service for service tokens.
var roles = []string{"admin", "service"}

func (Identity) kind() string { return "Identity" }

func (Identity) locator() string { return config.KeyAuthURL }

func (Identity) parse(secret map[string][]byte) error {
	_, err := config.ParseIdentity(secret)
	return err
}

func (i Identity) settings(b Backend, in engine.Inputs) (map[string]string, error) { //nolint:unparam // a method of Server
	admin := in.Secret(b.Connection.AdminSecretRef.Name)
	data := map[string]string{
		config.KeyAuthURL: string(admin[config.KeyAuthURL]),
		config.KeyProject: serviceProject,
		config.KeyRegion:  i.Region,
	}
	if public := admin[config.KeyPublicAuthURL]; len(public) > 0 {
		data[config.KeyPublicAuthURL] = string(public)
	}
	return data, nil
}

func (Identity) connect(ctx context.Context, b Backend, in engine.Inputs) ([]remoteObject, func(), error) {
	c, err := keystone(ctx, b, in)
	if err != nil {
		return nil, nil, err
	}
	mark := b.mark(in)
	user := identity.User{Name: b.account(), Password: b.password(in), Project: serviceProject, Roles: roles}
	return []remoteObject{{
		name:   "user " + user.Name,
		ensure: func() error { return c.EnsureUser(ctx, user, mark) },
		remove: func() error { return c.DeleteUser(ctx, user.Name, mark) },
		absent: func() (bool, error) { return c.UserAbsent(ctx, user.Name, mark) },
	}}, c.Close, nil
}

func keystone(ctx context.Context, b Backend, in engine.Inputs) (*identity.Client, error) {
	account, err := b.administrator(in)
	if err != nil {
		return nil, err
	}
	admin := in.Secret(b.Connection.AdminSecretRef.Name)
	return identity.Connect(ctx, identity.Server{
		AuthURL:       string(admin[config.KeyAuthURL]),
		User:          account.User,
		Password:      account.Password,
		UserDomain:    string(admin[config.KeyUserDomain]),
		Project:       string(admin[config.KeyProject]),
		ProjectDomain: string(admin[config.KeyProjectDomain]),
		CA:            account.CA,
	})
}

// Login logs in with the backend's own account. The client has to be closed.
func Login(ctx context.Context, b Backend, in engine.Inputs) (*identity.Client, error) {
	data, err := b.connection(in)
	if err != nil {
		return nil, err
	}
	account, err := config.ParseIdentity(data)
	if err != nil {
		return nil, engine.Wait("the account at Keystone is not usable: %s", err)
	}
	c, err := identity.Connect(ctx, identity.Server{
		AuthURL: account.AuthURL, User: account.User, Password: account.Password, UserDomain: account.UserDomain,
		Project: account.Project, ProjectDomain: account.ProjectDomain, CA: account.CA,
	})
	return c, failure("Identity", err)
}

func (Identity) remains(b Backend) string { return "user " + b.account() }

// Catalog is a Keystone. A Backend of this kind is the endpoints of the compute service in
// its region.
type Catalog struct {
	Identity
	// Endpoints of the compute API.
	Endpoints func(engine.Inputs) []commonv1.Endpoint
}

func (c Catalog) connect(ctx context.Context, b Backend, in engine.Inputs) ([]remoteObject, func(), error) {
	client, err := keystone(ctx, b, in)
	if err != nil {
		return nil, nil, err
	}
	mark := b.mark(in)
	urls := map[string]string{}
	for _, endpoint := range c.Endpoints(in) {
		urls[strings.ToLower(string(endpoint.Interface))] = endpoint.URL
	}
	catalog := identity.Catalog{ServiceType: serviceType, ServiceName: serviceName, Region: c.Region, Endpoints: urls}
	return []remoteObject{{
		name:   "an endpoint",
		ensure: func() error { return client.EnsureCatalog(ctx, catalog, mark) },
		remove: func() error { return client.DeleteCatalog(ctx, serviceType, mark) },
		absent: func() (bool, error) { return client.CatalogAbsent(ctx, serviceType, mark) },
	}}, client.Close, nil
}

func (c Catalog) remains(Backend) string { return "the endpoints of region " + c.Region }
