package registration

import (
	"context"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration/identity"
)

// Identity is a Keystone. An Account at it is a user with roles in a project.
type Identity struct {
	// Region of the endpoints.
	Region string
	// Project of the user, and its roles there.
	Project string
	Roles   []string
}

func (Identity) kind() string { return "Identity" }

func (Identity) locator() string { return config.KeyAuthURL }

func (Identity) given() [][]string { return config.IdentityKeys() }

func (Identity) parse(secret map[string][]byte) error {
	_, err := config.ParseIdentity(secret)
	return err
}

func (i Identity) settings(a Account, in engine.Inputs) (map[string]string, error) { //nolint:unparam // a method of Server
	admin := in.Secret(a.Connection.AdminSecretRef.Name)
	data := map[string]string{
		config.KeyAuthURL: string(admin[config.KeyAuthURL]),
		config.KeyProject: i.Project,
		config.KeyRegion:  i.Region,
	}
	if public := admin[config.KeyPublicAuthURL]; len(public) > 0 {
		data[config.KeyPublicAuthURL] = string(public)
	}
	return data, nil
}

func (i Identity) connect(ctx context.Context, a Account, in engine.Inputs) ([]remoteObject, func(), error) {
	c, err := keystone(ctx, a, in)
	if err != nil {
		return nil, nil, err
	}
	mark := a.mark(in)
	user := identity.User{Name: a.user(), Password: a.password(in), Project: i.Project, Roles: i.Roles}
	return []remoteObject{{
		name:   "user " + user.Name,
		ensure: func() error { return c.EnsureUser(ctx, user, mark) },
		remove: func() error { return c.DeleteUser(ctx, user.Name, mark) },
		absent: func() (bool, error) { return c.UserAbsent(ctx, user.Name, mark) },
	}}, c.Close, nil
}

func keystone(ctx context.Context, a Account, in engine.Inputs) (*identity.Client, error) {
	account, err := a.administrator(in)
	if err != nil {
		return nil, err
	}
	admin := in.Secret(a.Connection.AdminSecretRef.Name)
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

// Login logs in with the account of a connection Secret. The client has to be closed.
func Login(ctx context.Context, secret map[string][]byte) (*identity.Client, error) {
	account, err := config.ParseIdentity(secret)
	if err != nil {
		return nil, engine.Wait("the account at Keystone is not usable: %s", err)
	}
	c, err := identity.Connect(ctx, identity.Server{
		AuthURL: account.AuthURL, User: account.User, Password: account.Password, UserDomain: account.UserDomain,
		Project: account.Project, ProjectDomain: account.ProjectDomain, CA: account.CA,
		CredentialID: account.CredentialID, CredentialSecret: account.CredentialSecret, Region: account.Region,
	})
	return c, failure("Identity", err)
}

func (Identity) remains(a Account) string { return "user " + a.user() }

// Catalog is a Keystone. An Account at it stands for the endpoints of a service in its region.
type Catalog struct {
	Identity
	// ServiceType is for example compute, ServiceName nova.
	ServiceType, ServiceName string
	// Endpoints of the service.
	Endpoints func(engine.Inputs) []commonv1.Endpoint
}

func (c Catalog) connect(ctx context.Context, a Account, in engine.Inputs) ([]remoteObject, func(), error) {
	client, err := keystone(ctx, a, in)
	if err != nil {
		return nil, nil, err
	}
	mark := a.mark(in)
	urls := map[string]string{}
	for _, endpoint := range c.Endpoints(in) {
		urls[strings.ToLower(string(endpoint.Interface))] = endpoint.URL
	}
	catalog := identity.Catalog{ServiceType: c.ServiceType, ServiceName: c.ServiceName, Region: c.Region, Endpoints: urls}
	return []remoteObject{{
		name:   "an endpoint",
		ensure: func() error { return client.EnsureCatalog(ctx, catalog, mark) },
		remove: func() error { return client.DeleteCatalog(ctx, c.ServiceType, mark) },
		absent: func() (bool, error) { return client.CatalogAbsent(ctx, c.ServiceType, mark) },
	}}, client.Close, nil
}

func (c Catalog) remains(Account) string { return "the endpoints of region " + c.Region }
