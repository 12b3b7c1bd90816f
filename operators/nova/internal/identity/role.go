package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"

	"asterism.dev/operators/nova/internal/registration"
)

// ensureRoles gives the user its roles in its project. Project and roles are
// shared with other services: they are used as they are found.
func (c *Client) ensureRoles(ctx context.Context, user User, userID string, mark registration.Mark) error {
	project, err := c.ensureProject(ctx, user, mark)
	if err != nil {
		return err
	}
	assigned, err := c.assignedRoles(ctx, userID, project)
	if err != nil {
		return err
	}
	for _, name := range user.Roles {
		role, err := c.ensureRole(ctx, name, mark)
		if err != nil {
			return err
		}
		if slices.Contains(assigned, role) {
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
func (c *Client) ensureProject(ctx context.Context, user User, mark registration.Mark) (string, error) {
	domain, err := c.domainID(ctx, user.ProjectDomain)
	if err != nil {
		return "", err
	}
	doing := fmt.Sprintf("look for project %q", user.Project)
	pages, err := projects.List(c.api, projects.ListOpts{Name: user.Project, DomainID: domain}).AllPages(ctx)
	if err != nil {
		return "", c.failure(doing, err)
	}
	found, err := projects.ExtractProjects(pages)
	if err != nil {
		return "", c.failure(doing, err)
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

// ensureRole returns the ID of the role of no domain (a global role).
func (c *Client) ensureRole(ctx context.Context, name string, mark registration.Mark) (string, error) {
	doing := fmt.Sprintf("look for role %q", name)
	pages, err := roles.List(c.api, roles.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		return "", c.failure(doing, err)
	}
	found, err := roles.ExtractRoles(pages)
	if err != nil {
		return "", c.failure(doing, err)
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

// assignedRoles returns the IDs of the user's own roles in the project.
func (c *Client) assignedRoles(ctx context.Context, userID, projectID string) ([]string, error) {
	const doing = "look for role assignments"
	pages, err := roles.ListAssignments(c.api, roles.ListAssignmentsOpts{UserID: userID, ScopeProjectID: projectID}).AllPages(ctx)
	if err != nil {
		return nil, c.failure(doing, err)
	}
	found, err := roles.ExtractRoleAssignments(pages)
	if err != nil {
		return nil, c.failure(doing, err)
	}
	assigned := make([]string, 0, len(found))
	for _, assignment := range found {
		assigned = append(assigned, assignment.Role.ID)
	}
	return assigned, nil
}
