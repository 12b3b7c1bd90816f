package identity

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/domains"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// longestUser is Keystone's limit for the name of a user, in characters.
const longestUser = 255

// User is the user of a service, in the domain Default.
type User struct {
	Name     string
	Password config.Password
	Project  string   // in the domain Default; default is service
	Roles    []string // in Project; Nova needs admin and service
}

// EnsureUser creates the user with the mark, or corrects its password and its roles. It
// creates the project and the roles if they are missing. It first logs in with the
// password and changes only wrong settings, because a change of the password revokes all
// tokens of the user. A user of this name with another mark, or without a mark, is a
// remote.Conflict and is not changed.
func (c *Client) EnsureUser(ctx context.Context, user User, mark remote.Mark) error {
	user.Project = cmp.Or(user.Project, "service")
	found, err := c.findUser(ctx, user.Name)
	if err != nil {
		return err
	}
	if found != nil && found.Description != string(mark) {
		return &remote.Conflict{Address: c.address, Kind: "Keystone user", Name: user.Name, Found: found.Description, Want: mark}
	}
	if found != nil {
		complete, err := c.mayUse(ctx, user)
		if complete || err != nil {
			return err
		}
	}
	id, err := c.ensurePassword(ctx, user, found, mark)
	if err != nil {
		return err
	}
	return c.ensureRoles(ctx, user, id, mark)
}

func (u User) login() tokens.AuthOptions {
	return tokens.AuthOptions{Username: u.Name, DomainName: defaultDomain, Password: string(u.Password)}
}

// mayUse returns whether the user gets a token for its project with its roles.
func (c *Client) mayUse(ctx context.Context, user User) (bool, error) {
	options := user.login()
	options.Scope = tokens.Scope{ProjectName: user.Project, DomainName: defaultDomain}
	token := c.login(ctx, options)
	if gophercloud.ResponseCodeIs(token.Err, http.StatusUnauthorized) {
		return false, nil
	}
	granted, err := token.ExtractRoles()
	if err != nil {
		return false, c.secretFailure(fmt.Sprintf("log in as user %q", user.Name), err)
	}
	for _, role := range user.Roles {
		if !slices.ContainsFunc(granted, func(has tokens.Role) bool { return has.Name == role }) {
			return false, nil
		}
	}
	return true, nil
}

// ensurePassword returns the user's ID. It creates the user if found is nil.
func (c *Client) ensurePassword(ctx context.Context, user User, found *users.User, mark remote.Mark) (string, error) {
	if found == nil {
		return c.createUser(ctx, user, mark)
	}
	token := c.login(ctx, user.login())
	if token.Err == nil {
		return found.ID, nil
	}
	if !gophercloud.ResponseCodeIs(token.Err, http.StatusUnauthorized) {
		return "", c.secretFailure(fmt.Sprintf("log in as user %q", user.Name), token.Err)
	}
	err := users.Update(ctx, c.api, found.ID, users.UpdateOpts{
		Password: string(user.Password), Enabled: new(true), Options: serviceUser,
	}).Err
	return found.ID, c.secretFailure(fmt.Sprintf("set the password of user %q", user.Name), err)
}

// serviceUser exempts a service's user from the password rules for people (keystone doc:
// admin/resource-options).
var serviceUser = map[users.Option]any{
	users.IgnoreChangePasswordUponFirstUse: true,
	users.IgnorePasswordExpiry:             true,
	users.IgnoreLockoutFailureAttempts:     true,
}

func (c *Client) createUser(ctx context.Context, user User, mark remote.Mark) (string, error) {
	domain, err := c.domainID(ctx)
	if err != nil {
		return "", err
	}
	created, err := users.Create(ctx, c.api, users.CreateOpts{
		Name: user.Name, DomainID: domain, Password: string(user.Password),
		Description: string(mark), Enabled: new(true), Options: serviceUser,
	}).Extract()
	if err != nil {
		return "", c.secretFailure(fmt.Sprintf("create user %q", user.Name), err)
	}
	return created.ID, nil
}

// DeleteUser deletes the user if it has the mark. A user without the mark is not changed,
// and is no error.
func (c *Client) DeleteUser(ctx context.Context, name string, mark remote.Mark) error {
	found, err := c.findUser(ctx, name)
	if err != nil || found == nil || found.Description != string(mark) {
		return err
	}
	err = users.Delete(ctx, c.api, found.ID).Err
	return c.failure(fmt.Sprintf("delete user %q", name), unlessAbsent(err))
}

// UserAbsent returns whether no user of this name has the mark.
func (c *Client) UserAbsent(ctx context.Context, name string, mark remote.Mark) (bool, error) {
	found, err := c.findUser(ctx, name)
	return err == nil && (found == nil || found.Description != string(mark)), err
}

// findUser returns the user, or nil if it does not exist.
func (c *Client) findUser(ctx context.Context, name string) (*users.User, error) {
	if err := remote.CheckName("Keystone user", name, longestUser); err != nil {
		return nil, err
	}
	domain, err := c.domainID(ctx)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, c, fmt.Sprintf("user %q", name), users.List(c.api, users.ListOpts{Name: name, DomainID: domain}), users.ExtractUsers)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// domainID returns the ID of the domain Default.
func (c *Client) domainID(ctx context.Context) (string, error) {
	found, err := list(ctx, c, fmt.Sprintf("domain %q", defaultDomain), domains.List(c.api, domains.ListOpts{Name: defaultDomain}), domains.ExtractDomains)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s: Keystone has no domain %q", c.address, defaultDomain)
	}
	return found[0].ID, nil
}
