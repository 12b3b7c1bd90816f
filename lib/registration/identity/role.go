package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"

	"asterism.dev/lib/registration/remote"
)

// ensureRoles gives the user its roles in its project. Other services share the project and
// the roles, and so these are not changed.
func (c *Client) ensureRoles(ctx context.Context, user User, userID string, mark remote.Mark) error {
	project, err := c.ensureProject(ctx, user, mark)
	if err != nil {
		return err
	}
	query := roles.ListAssignmentsOpts{UserID: userID, ScopeProjectID: project}
	assigned, err := list(ctx, c, "role assignments", roles.ListAssignments(c.api, query), roles.ExtractRoleAssignments)
	if err != nil {
		return err
	}
	for _, name := range user.Roles {
		role, err := c.ensureRole(ctx, name, mark)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(assigned, func(has roles.RoleAssignment) bool { return has.Role.ID == role }) {
			continue
		}
		err = roles.Assign(ctx, c.api, role, roles.AssignOpts{UserID: userID, ProjectID: project}).Err
		if err != nil {
			return c.failure(fmt.Sprintf("give user %q the role %q in project %q", user.Name, name, user.Project), err)
		}
	}
	return nil
}

// ensureProject returns the ID of the user's project.
func (c *Client) ensureProject(ctx context.Context, user User, mark remote.Mark) (string, error) {
	domain, err := c.domainID(ctx)
	if err != nil {
		return "", err
	}
	query := projects.ListOpts{Name: user.Project, DomainID: domain}
	found, err := list(ctx, c, fmt.Sprintf("project %q", user.Project), projects.List(c.api, query), projects.ExtractProjects)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].ID, nil
	}
	created, err := projects.Create(ctx, c.api, projects.CreateOpts{
		Name: user.Project, DomainID: domain, Description: string(mark),
	}).Extract()
	if err != nil {
		return "", c.failure(fmt.Sprintf("create project %q", user.Project), err)
	}
	return created.ID, nil
}

// ensureRole returns the ID of the global role (a role without a domain).
func (c *Client) ensureRole(ctx context.Context, name string, mark remote.Mark) (string, error) {
	found, err := list(ctx, c, fmt.Sprintf("role %q", name), roles.List(c.api, roles.ListOpts{Name: name}), roles.ExtractRoles)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].ID, nil
	}
	created, err := roles.Create(ctx, c.api, roles.CreateOpts{Name: name, Description: string(mark)}).Extract()
	if err != nil {
		return "", c.failure(fmt.Sprintf("create role %q", name), err)
	}
	return created.ID, nil
}
