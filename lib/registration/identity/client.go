// Package identity registers a service user and catalog entries at Keystone
// (Identity API v3).
//
// A user and an endpoint belong to one owner. Their description is the ownership mark,
// which the request that creates them sets. (Keystone stores the description of an
// endpoint as an extra attribute.)
//
// Installations share the project, the roles, the region and the service entry of the
// catalog. The operator uses them unchanged, and creates them with the mark if they are
// missing. All regions share one service entry of a type, because some clients read only
// the first entry of a type, and would not find the regions of a second entry. So only an
// endpoint can be a conflict: an endpoint of the service type in the owner's region that
// does not have the mark. A service entry that Asterism has created is deleted with its
// last endpoint. Projects, roles and regions are not deleted, because other users may
// refer to them.
package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// defaultDomain is the domain of the users and projects of services.
const defaultDomain = "Default"

// Server is a Keystone and an account, of an administrator or a service.
type Server struct {
	AuthURL       string // with or without /v3
	User          string
	Password      config.Password
	UserDomain    string // default: Default
	Project       string // default: admin
	ProjectDomain string // default: Default
	// CredentialID and CredentialSecret of an application credential, used instead of all of these.
	CredentialID     string
	CredentialSecret config.Password
	CA               []byte // PEM; default: the system's authorities
	// Region is that of endpoints in the catalog.
	Region string
}

// Client sends requests to a Server with a token of the administrator. Its methods return
// the error types of package remote. No error has a password.
type Client struct {
	server    Server
	address   string // host:port
	transport *remote.Transport
	api       *gophercloud.ServiceClient
}

// Connect gets a token. The caller must close the Client.
func Connect(ctx context.Context, server Server) (*Client, error) {
	server.UserDomain = cmp.Or(server.UserDomain, defaultDomain)
	server.Project = cmp.Or(server.Project, "admin")
	server.ProjectDomain = cmp.Or(server.ProjectDomain, defaultDomain)
	endpoint, err := parseAuthURL(server.AuthURL)
	if err != nil {
		return nil, err
	}
	client := &Client{server: server, address: hostPort(endpoint)}
	client.transport, err = remote.NewTransport(endpoint, server.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", client.address, err)
	}
	client.api = client.newAPI(endpoint.String())
	token := client.login(ctx, server.options())
	if token.Err == nil {
		token.Err = client.api.SetTokenAndAuthResult(token)
	}
	if token.Err != nil {
		client.Close()
		return nil, client.loginFailure(token.Err)
	}
	return client, nil
}

func (s Server) options() tokens.AuthOptions {
	if s.CredentialID != "" { // has the user and the project in itself
		return tokens.AuthOptions{ApplicationCredentialID: s.CredentialID, ApplicationCredentialSecret: string(s.CredentialSecret)}
	}
	return tokens.AuthOptions{
		Username: s.User, DomainName: s.UserDomain, Password: string(s.Password),
		Scope: tokens.Scope{ProjectName: s.Project, DomainName: s.ProjectDomain},
	}
}

// account is the name of the account in errors.
func (s Server) account() string { return cmp.Or(s.CredentialID, s.User) }

// Token returns the token, which authorizes requests to other services too.
func (c *Client) Token() string { return c.api.Token() }

// Close closes idle connections.
func (c *Client) Close() { c.transport.Close() }

// parseAuthURL returns the base URL of the v3 API.
func parseAuthURL(text string) (*url.URL, error) {
	endpoint, err := config.ParseWebAddress(text)
	if err != nil {
		return nil, fmt.Errorf("the authURL %w", err)
	}
	endpoint.RawPath = ""
	endpoint.Path = strings.TrimSuffix(strings.TrimRight(endpoint.Path, "/"), "/v3") + "/v3/"
	return endpoint, nil
}

func hostPort(address *url.URL) string {
	port := cmp.Or(address.Port(), map[string]string{"http": "80", "https": "443"}[address.Scheme])
	return net.JoinHostPort(address.Hostname(), port)
}

// newAPI returns a client without a token. It uses the authURL and not the address of
// Keystone in the catalog, which the operator may not be able to reach.
func (c *Client) newAPI(endpoint string) *gophercloud.ServiceClient {
	provider := &gophercloud.ProviderClient{
		IdentityEndpoint: endpoint,
		HTTPClient:       http.Client{Transport: c.transport, Timeout: remote.AnswerTimeout},
	}
	provider.UseTokenLock()
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: "identity"}
}

// login requests a token. The token is unscoped if as has no project.
func (c *Client) login(ctx context.Context, as tokens.AuthOptions) tokens.CreateResult {
	return tokens.Create(ctx, c.newAPI(c.api.Endpoint), &as)
}

// maxPages and maxFound bound what is read of one list, such as the endpoints of a service.
const (
	maxPages = 20
	maxFound = 500
)

// list returns the objects on all pages of a list. what completes "could not look for …".
func list[O any](ctx context.Context, c *Client, what string, pages pagination.Pager, extract func(pagination.Page) ([]O, error)) ([]O, error) {
	var all []O
	read := 0
	err := pages.EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		if read++; read > maxPages {
			return false, fmt.Errorf("the list has more than %d pages", maxPages)
		}
		found, err := extract(page)
		if err == nil && len(all)+len(found) > maxFound {
			return false, fmt.Errorf("the list has more than %d objects", maxFound)
		}
		all = append(all, found...)
		return true, err
	})
	return all, c.failure("look for "+what, err)
}

// loginFailure returns the error for a failed login of the administrator.
func (c *Client) loginFailure(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		reason := fmt.Sprintf("wrong user, domain %q or password, or no role in project %q", c.server.UserDomain, c.server.Project)
		if c.server.CredentialID != "" {
			reason = "no application credential with this ID and secret, or its user has no role in its project any more"
		}
		return &remote.Denied{Address: c.address, Account: c.server.account(), Reason: reason}
	}
	return c.secretFailure("log in", err)
}

// secretFailure is failure for a request with a password, without Keystone's message, which
// may quote the password.
func (c *Client) secretFailure(doing string, err error) error {
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		answer.Body = nil
		err = answer
	}
	return c.failure(doing, err)
}

// failure converts an error of gophercloud into an error type of package remote, if
// one fits. doing completes "could not …".
func (c *Client) failure(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return c.answerFailure(doing, answer)
	}
	if _, ok := errors.AsType[*url.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return &remote.Unreachable{Address: c.address, Err: err}
	}
	_, notJSON := errors.AsType[*json.SyntaxError](err)
	_, otherJSON := errors.AsType[*json.UnmarshalTypeError](err)
	if notJSON || otherJSON {
		return fmt.Errorf("%s: could not %s: the answer is not from Keystone: check authURL", c.address, doing)
	}
	return fmt.Errorf("%s: could not %s: %s", c.address, doing, remote.Quote(err.Error()))
}

// unlessAbsent returns nil for the error of deleting an object that does not exist.
func unlessAbsent(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func (c *Client) answerFailure(doing string, answer gophercloud.ErrUnexpectedResponseCode) error {
	reason := fmt.Sprintf("could not %s: HTTP %d", doing, answer.Actual)
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(answer.Body, &body) == nil && body.Error.Message != "" {
		reason += ": " + remote.Quote(body.Error.Message)
	}
	switch {
	case answer.Actual == http.StatusUnauthorized, answer.Actual == http.StatusForbidden:
		return &remote.Denied{Address: c.address, Account: c.server.account(), Reason: reason}
	case remote.Unavailable(answer.Actual):
		return &remote.Unreachable{Address: c.address, Err: errors.New(reason)}
	}
	return fmt.Errorf("%s: %s", c.address, reason)
}
