// Package identity registers a service user and catalog entries at Keystone
// (Identity API v3).
//
// What is ours alone carries our ownership mark in its description, written by
// the request that creates it: users and endpoints. (Keystone keeps an
// endpoint's description among its extra attributes.)
//
// What installations share is used as it is found, and created with our mark
// where it is missing: the project, the roles, the region, and the catalog's
// service entry. All regions share one entry of a type, because there are
// clients that read only the first entry of a type and would not see the
// regions of a second. So a conflict is about endpoints: one of that service
// type in our region that lacks our mark. A service entry of Asterism's goes
// with its last endpoint; projects, roles and regions stay, since others may
// refer to them.
package identity

import (
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

	"asterism.dev/operators/nova/internal/registration"
)

// Server is a Keystone and the administrator's account.
type Server struct {
	AuthURL       string // with or without /v3
	User          string
	Password      config.Password
	UserDomain    string // default: Default
	Project       string // default: admin
	ProjectDomain string // default: Default
	CA            []byte // PEM, optional: default is the system's certificates
}

// Client talks to a Server with a token of the administrator. Its methods
// return the error types of package registration; no error holds a password.
type Client struct {
	server    Server
	address   string // host:port
	transport *registration.Transport
	api       *gophercloud.ServiceClient
}

// Connect gets a token. The Client has to be closed.
func Connect(ctx context.Context, server Server) (*Client, error) {
	server.UserDomain = orDefault(server.UserDomain, "Default")
	server.Project = orDefault(server.Project, "admin")
	server.ProjectDomain = orDefault(server.ProjectDomain, "Default")
	endpoint, address, err := parseAuthURL(server.AuthURL)
	if err != nil {
		return nil, err
	}
	transport, err := registration.NewTransport(server.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	client := &Client{server: server, address: address, transport: transport}
	client.api = client.newAPI(endpoint)
	token := client.login(ctx, login{
		user: server.User, userDomain: server.UserDomain, password: server.Password,
		project: server.Project, projectDomain: server.ProjectDomain,
	})
	if token.Err == nil {
		token.Err = client.api.SetTokenAndAuthResult(token)
	}
	if token.Err != nil {
		client.Close()
		return nil, client.loginFailure(token.Err)
	}
	return client, nil
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.Close() }

// parseAuthURL returns the base URL of the v3 API and its host:port.
func parseAuthURL(text string) (endpoint, address string, err error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.User != nil || parsed.RawQuery != "" {
		return "", "", errors.New("the authURL is not of the form http(s)://host[:port][/path]")
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
	}
	base := strings.TrimSuffix(strings.TrimRight(text, "/"), "/v3")
	return base + "/v3/", net.JoinHostPort(parsed.Hostname(), port), nil
}

// newAPI returns a client without a token. It talks to the authURL and not to
// what the catalog says of Keystone, which need not be reachable from here.
func (c *Client) newAPI(endpoint string) *gophercloud.ServiceClient {
	provider := &gophercloud.ProviderClient{
		IdentityEndpoint: endpoint,
		HTTPClient:       http.Client{Transport: c.transport, Timeout: registration.AnswerTimeout},
	}
	provider.UseTokenLock()
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: "identity"}
}

// login says whose token is wanted. Without a project it is unscoped.
type login struct {
	user, userDomain       string
	password               config.Password
	project, projectDomain string
}

func (c *Client) login(ctx context.Context, as login) tokens.CreateResult {
	options := &tokens.AuthOptions{Username: as.user, Password: string(as.password), DomainName: as.userDomain}
	if as.project != "" {
		options.Scope = tokens.Scope{ProjectName: as.project, DomainName: as.projectDomain}
	}
	return tokens.Create(ctx, c.newAPI(c.api.Endpoint), options)
}

// maxPages bounds how many pages of one list are read.
const maxPages = 100

// list returns all that a list of Keystone's holds. what completes "could not
// look for …".
func list[O any](ctx context.Context, c *Client, what string, pages pagination.Pager, extract func(pagination.Page) ([]O, error)) ([]O, error) {
	var all []O
	read := 0
	err := pages.EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
		if read++; read > maxPages {
			return false, fmt.Errorf("the list has more than %d pages", maxPages)
		}
		found, err := extract(page)
		all = append(all, found...)
		return true, err
	})
	return all, c.failure("look for "+what, err)
}

// loginFailure words the administrator's failed login.
func (c *Client) loginFailure(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		return &registration.Denied{
			Address: c.address, Account: c.server.User,
			Reason: fmt.Sprintf("wrong user, domain %q or password, or no role in project %q", c.server.UserDomain, c.server.Project),
		}
	}
	return c.secretFailure("log in", err)
}

// secretFailure is failure for a request that held a password: Keystone's
// message may quote it.
func (c *Client) secretFailure(doing string, err error) error {
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		answer.Body = nil
		err = answer
	}
	return c.failure(doing, err)
}

// failure gives an error of the library one of the types of package
// registration where one fits. doing completes "could not …".
func (c *Client) failure(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return c.answerFailure(doing, answer)
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return &registration.Unreachable{Address: c.address, Err: err}
	}
	_, notJSON := errors.AsType[*json.SyntaxError](err)
	_, otherJSON := errors.AsType[*json.UnmarshalTypeError](err)
	if notJSON || otherJSON {
		return fmt.Errorf("%s: could not %s: the answer is not that of Keystone", c.address, doing)
	}
	return fmt.Errorf("%s: could not %s: %w", c.address, doing, err)
}

func (c *Client) answerFailure(doing string, answer gophercloud.ErrUnexpectedResponseCode) error {
	reason := fmt.Sprintf("could not %s: HTTP %d", doing, answer.Actual)
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(answer.Body, &body) == nil && body.Error.Message != "" {
		reason += ": " + body.Error.Message
	}
	switch {
	case answer.Actual == http.StatusUnauthorized, answer.Actual == http.StatusForbidden:
		return &registration.Denied{Address: c.address, Account: c.server.User, Reason: reason}
	case registration.Unavailable(answer.Actual):
		return &registration.Unreachable{Address: c.address, Err: errors.New(reason)}
	}
	return fmt.Errorf("%s: %s", c.address, reason)
}
