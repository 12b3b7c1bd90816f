package backend

import (
	"context"
	"fmt"
	"strings"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novav1 "asterism.dev/operators/nova/api/v1alpha1"
	"asterism.dev/operators/nova/internal/identity"
)

// Identity is the services' account at Keystone and the catalog entries.
type Identity struct {
	Owner    Owner
	Identity novav1.Identity
	// User to register.
	User string
	// Key of the user's password in the Secret of credentials.
	Key string
}

const (
	serviceProject = "service"
	serviceType    = "compute"
	serviceName    = "nova"
)

// roles of the account: admin calls other services, service sends service tokens.
var roles = []string{"admin", "service"}

// Inputs are waited for before anything else.
func (i Identity) Inputs() []engine.Need {
	if i.Identity.Given() {
		return []engine.Need{engine.Secret(i.Identity.ConnectionSecretRef.Name, config.KeyAuthURL, config.KeyUser, config.KeyPassword)}
	}
	return append(administratorNeeds(i.Identity.AdminSecretRef.Name), engine.Secret(i.Identity.AdminSecretRef.Name, config.KeyAuthURL))
}

// Needs of the stage that registers.
func (i Identity) Needs() []engine.Need {
	needs := i.Inputs()
	if !i.Identity.Given() {
		needs = append(needs, engine.Cluster(), engine.Secret(i.Owner.Credentials, i.Key))
	}
	return needs
}

// Check refuses inputs that no service could use.
func (i Identity) Check(in engine.Inputs) error {
	if !i.Identity.Given() {
		return nil
	}
	name := i.Identity.ConnectionSecretRef.Name
	if _, err := config.ParseIdentity(in.Secret(name)); err != nil {
		return engine.Wait("Secret %s: %s", name, err)
	}
	return nil
}

// Ensure registers the account.
func (i Identity) Ensure(ctx context.Context, in engine.Inputs) error {
	if i.Identity.Given() {
		return nil
	}
	return i.do(ctx, in, func(c *identity.Client) error {
		return c.EnsureUser(ctx, identity.User{
			Name: i.user(), Password: i.Owner.password(in, i.Key), Project: serviceProject, Roles: roles,
		}, i.Owner.Mark(in))
	})
}

// Secret returns the name of the connection Secret and, if we make it, the
// Secret itself.
func (i Identity) Secret(in engine.Inputs) (string, []engine.Child, error) {
	if i.Identity.Given() {
		return i.Identity.ConnectionSecretRef.Name, nil, nil
	}
	admin := in.Secret(i.Identity.AdminSecretRef.Name)
	data := map[string]string{
		config.KeyAuthURL:  string(admin[config.KeyAuthURL]),
		config.KeyUser:     i.user(),
		config.KeyPassword: string(i.Owner.password(in, i.Key)),
		config.KeyProject:  serviceProject,
		config.KeyRegion:   i.Identity.Region,
	}
	if public := admin[config.KeyPublicAuthURL]; len(public) > 0 {
		data[config.KeyPublicAuthURL] = string(public)
	}
	addTLS(data, admin)
	name, secret, err := connectionSecret(i.Owner.Object.GetName()+"-identity", data)
	return name, []engine.Child{secret}, err
}

// Publish registers the compute service and its endpoints.
func (i Identity) Publish(ctx context.Context, in engine.Inputs, endpoints []commonv1.Endpoint) error {
	if i.Identity.Given() {
		return nil
	}
	urls := map[string]string{}
	for _, endpoint := range endpoints {
		urls[strings.ToLower(string(endpoint.Interface))] = endpoint.URL
	}
	return i.do(ctx, in, func(c *identity.Client) error {
		return c.EnsureCatalog(ctx, identity.Catalog{
			ServiceType: serviceType, ServiceName: serviceName, Region: i.Identity.Region, Endpoints: urls,
		}, i.Owner.Mark(in))
	})
}

// TeardownNeeds are those of Withdraw and Remove; what is missing cannot be removed.
func (i Identity) TeardownNeeds() []engine.Need {
	if i.Identity.Given() {
		return nil
	}
	return []engine.Need{engine.Cluster(), engine.Secret(i.Identity.AdminSecretRef.Name).Optional()}
}

// Withdraw removes the endpoints from the catalog and looks whether they are gone.
func (i Identity) Withdraw(ctx context.Context, in engine.Inputs) error {
	if i.Identity.Given() {
		return nil
	}
	mark := i.Owner.Mark(in)
	return i.removal(in, "the endpoints of region "+i.Identity.Region, func() error {
		return i.do(ctx, in, func(c *identity.Client) error {
			if err := c.DeleteCatalog(ctx, serviceType, mark); err != nil {
				return err
			}
			if gone, err := c.CatalogAbsent(ctx, serviceType, mark); err != nil || !gone {
				return orStillThere(err, "an endpoint")
			}
			return nil
		})
	})
}

// Remove deletes the account and looks whether it is gone.
func (i Identity) Remove(ctx context.Context, in engine.Inputs) error {
	if i.Identity.Given() {
		return nil
	}
	mark := i.Owner.Mark(in)
	return i.removal(in, "user "+i.user(), func() error {
		return i.do(ctx, in, func(c *identity.Client) error {
			if err := c.DeleteUser(ctx, i.user(), "Default", mark); err != nil {
				return err
			}
			if gone, err := c.UserAbsent(ctx, i.user(), "Default", mark); err != nil || !gone {
				return orStillThere(err, "user "+i.user())
			}
			return nil
		})
	})
}

func (i Identity) removal(in engine.Inputs, left string, remove func() error) error {
	admin := i.Identity.AdminSecretRef.Name
	return removal(i.Owner, fmt.Sprintf("%s at the Keystone of Secret %s", left, admin), goneSecret(in, admin), remove)
}

func (i Identity) user() string { return i.Owner.Account(i.User) }

func (i Identity) do(ctx context.Context, in engine.Inputs, what func(*identity.Client) error) error {
	admin := in.Secret(i.Identity.AdminSecretRef.Name)
	account, err := administrator(in, i.Identity.AdminSecretRef.Name)
	if err != nil {
		return err
	}
	c, err := identity.Connect(ctx, identity.Server{
		AuthURL:       string(admin[config.KeyAuthURL]),
		User:          account.User,
		Password:      account.Password,
		UserDomain:    string(admin[config.KeyUserDomain]),
		Project:       string(admin[config.KeyProject]),
		ProjectDomain: string(admin[config.KeyProjectDomain]),
		CA:            account.CA,
	})
	if err != nil {
		return failure("Identity", err)
	}
	defer c.Close()
	return failure("Identity", what(c))
}
