// Package messagebus registers virtual hosts and users at RabbitMQ, through
// its management API (RabbitMQ 3.10 to 4.x).
//
// A virtual host carries its ownership mark as its description, a user as its
// one tag: RabbitMQ splits tags at commas and takes anything else, spaces and
// slashes included. Tags of RabbitMQ's own are single words, so a mark gives
// no right.
package messagebus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"asterism.dev/lib/common/config"

	"asterism.dev/operators/nova/internal/registration"
)

// Server is a RabbitMQ management API and an account with the tag
// "administrator".
type Server struct {
	Address  string // host:port of the management API
	User     string
	Password config.Password
	TLS      bool   // HTTPS, and verify the server's certificate
	CA       []byte // PEM, optional: default is the system's certificates
}

// Client talks to a Server. Its methods return the error types of package
// registration; no error holds a password.
type Client struct {
	server    Server
	transport *registration.Transport
}

// Connect checks that the server is a RabbitMQ management API and that the
// account may administer it. The Client has to be closed.
func Connect(ctx context.Context, server Server) (*Client, error) {
	transport, err := registration.NewTransport(server.CA)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server.Address, err)
	}
	client := &Client{server: server, transport: transport}
	me, err := client.api(ctx).Whoami()
	if err != nil {
		client.Close()
		return nil, client.failure("ask who is logged in", err)
	}
	if !slices.Contains(me.Tags, "administrator") {
		client.Close()
		return nil, client.denied("it lacks the tag administrator")
	}
	return client, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.Close() }

// api returns a client whose requests end with ctx.
func (c *Client) api(ctx context.Context) *rabbithole.Client {
	scheme := "http"
	if c.server.TLS {
		scheme = "https"
	}
	api := &rabbithole.Client{
		Endpoint: scheme + "://" + c.server.Address,
		Username: c.server.User,
		Password: string(c.server.Password),
	}
	api.SetTransport(request{ctx, c})
	return api
}

// request adds to the library's requests what it has no way to pass: a
// context, and the reason of a refusal.
type request struct {
	ctx    context.Context
	client *Client
}

func (r request) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.ctx, registration.AnswerTimeout)
	response, err := r.client.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = body{response.Body, cancel}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		defer response.Body.Close() //nolint:errcheck // it was only read
		return nil, r.client.denied(refusal(response.Body))
	}
	return response, nil
}

// body releases the request's context when the answer has been read.
type body struct {
	io.ReadCloser
	release context.CancelFunc
}

func (b body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// refusal is RabbitMQ's reason for a 401, such as "Login failed".
func refusal(body io.Reader) string {
	var answer rabbithole.ErrorResponse
	if err := json.NewDecoder(io.LimitReader(body, 4096)).Decode(&answer); err != nil || answer.Reason == "" {
		return "wrong user or password"
	}
	return answer.Reason
}

func (c *Client) denied(reason string) error {
	return &registration.Denied{Address: c.server.Address, Account: c.server.User, Reason: reason}
}

// failure gives an error of the library one of the types of package
// registration where one fits. doing completes "could not …".
func (c *Client) failure(doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if denied, ok := errors.AsType[*registration.Denied](err); ok {
		return denied
	}
	if answer, ok := errors.AsType[rabbithole.ErrorResponse](err); ok {
		failed := fmt.Errorf("could not %s: HTTP %d: %s", doing, answer.StatusCode, answer.Reason)
		if registration.Unavailable(answer.StatusCode) {
			return &registration.Unreachable{Address: c.server.Address, Err: failed}
		}
		return fmt.Errorf("%s: %w", c.server.Address, failed)
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s: could not %s: the answer is not that of RabbitMQ's management API", c.server.Address, doing)
	}
	return &registration.Unreachable{Address: c.server.Address, Err: err}
}

func isNotFound(err error) bool {
	answer, ok := errors.AsType[rabbithole.ErrorResponse](err)
	return ok && answer.StatusCode == http.StatusNotFound
}

// write finishes a request that changes something.
func (c *Client) write(doing string, response *http.Response, err error) error {
	if err == nil {
		_ = response.Body.Close()
	}
	return c.failure(doing, err)
}
