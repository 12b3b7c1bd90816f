// Package messagebus registers virtual hosts and users at RabbitMQ, through its management
// API (RabbitMQ 3.10 to 4.x).
//
// The ownership mark of a virtual host is its description, the mark of a user is its only
// tag: RabbitMQ splits tags at commas and accepts all other characters, for example spaces
// and slashes. The tags that give rights are single words, and so a mark gives no right.
package messagebus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// Server is a RabbitMQ management API and an account with the tag
// "administrator".
type Server struct {
	Address  string // host:port of the management API
	User     string
	Password config.Password
	TLS      bool   // uses HTTPS and verifies the server's certificate
	CA       []byte // PEM; default: the system's authorities
}

// Client sends requests to a Server. Its methods return the error types of package
// remote. No error has a password.
type Client struct {
	server    Server
	api       *url.URL
	transport *remote.Transport
}

// Connect checks that the server is a RabbitMQ management API and that the account has the
// tag administrator. The caller must close the Client.
func Connect(ctx context.Context, server Server) (*Client, error) {
	api := &url.URL{Scheme: "http", Host: server.Address, Path: "/api"}
	if server.TLS {
		api.Scheme = "https"
	}
	transport, err := remote.NewTransport(api, server.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server.Address, err)
	}
	client := &Client{server: server, api: api, transport: transport}
	if err := client.checkAdministrator(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.Close() }

func (c *Client) checkAdministrator(ctx context.Context) error {
	var me struct {
		Tags tags `json:"tags"`
	}
	whoami := request{doing: "read the logged-in user", method: http.MethodGet, path: []string{"whoami"}}
	if err := c.call(ctx, whoami, &me); err != nil {
		return err
	}
	if !slices.Contains(strings.Split(string(me.Tags), ","), "administrator") {
		return c.denied("the user lacks the tag administrator")
	}
	return nil
}

// request is one request to the management API
// (https://www.rabbitmq.com/docs/http-api-reference).
type request struct {
	doing    string // completes "could not …"
	method   string
	path     []string // the segments after /api
	optional bool     // a 404 is no error
	body     any      // sent as JSON; nil: nothing is sent
	hint     string   // replaces the server's reason, which may quote the body
}

// find decodes the object at the path into answer. It does not change answer if the object
// does not exist.
func (c *Client) find(ctx context.Context, doing string, answer any, path ...string) error {
	return c.call(ctx, request{doing: doing, method: http.MethodGet, path: path, optional: true}, answer)
}

func (c *Client) put(ctx context.Context, doing string, body any, path ...string) error {
	return c.call(ctx, request{doing: doing, method: http.MethodPut, path: path, body: body}, nil)
}

// delete deletes the object at the path, if it exists.
func (c *Client) delete(ctx context.Context, doing string, path ...string) error {
	return c.call(ctx, request{doing: doing, method: http.MethodDelete, path: path, optional: true}, nil)
}

// call sends a request and decodes the server's answer into answer, unless answer is nil.
func (c *Client) call(ctx context.Context, r request, answer any) error {
	status, content, err := c.send(ctx, r)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return &remote.Unreachable{Address: c.server.Address, Err: err}
	case r.optional && status == http.StatusNotFound:
		return nil
	case status/100 != 2:
		return c.refusal(r, status, content)
	case answer != nil && json.Unmarshal(content, answer) != nil:
		return fmt.Errorf("%s: could not %s: the answer is not from RabbitMQ's management API: check the port", c.server.Address, r.doing)
	}
	return nil
}

// send returns the status and the content of the server's answer.
func (c *Client) send(ctx context.Context, r request) (status int, content []byte, err error) {
	address := c.api.String()
	for _, segment := range r.path {
		address += "/" + url.PathEscape(segment)
	}
	body := &bytes.Buffer{}
	if r.body != nil {
		if err := json.NewEncoder(body).Encode(r.body); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return 0, nil, err
	}
	request.SetBasicAuth(c.server.User, string(c.server.Password))
	request.Header.Set("Content-Type", "application/json")
	return c.transport.Send(request)
}

// refusal returns the error for a status other than 2xx.
func (c *Client) refusal(r request, status int, content []byte) error {
	var answer struct {
		Reason string `json:"reason"` // such as "Login failed"
	}
	_ = json.Unmarshal(content, &answer) // the answer of a proxy has no reason
	answer.Reason = remote.Quote(answer.Reason)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return c.denied(cmp.Or(answer.Reason, "wrong user or password"))
	}
	failed := fmt.Errorf("could not %s: HTTP %d: %s", r.doing, status, cmp.Or(r.hint, answer.Reason, http.StatusText(status)))
	if remote.Unavailable(status) {
		return &remote.Unreachable{Address: c.server.Address, Err: failed}
	}
	return fmt.Errorf("%s: %w", c.server.Address, failed)
}

func (c *Client) denied(reason string) error {
	return &remote.Denied{Address: c.server.Address, Account: c.server.User, Reason: reason}
}
