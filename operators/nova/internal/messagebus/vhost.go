package messagebus

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"asterism.dev/operators/nova/internal/registration"
)

// longestName bounds the names of vhosts and users. RabbitMQ would take 255
// bytes.
const longestName = 128

// stopped is the state, on a node, of a virtual host that refuses connections.
const stopped = "stopped"

// EnsureVhost creates the virtual host with the mark, unless it exists with
// that mark, and starts it where it does not run: RabbitMQ leaves it so if the
// connection that asked for it is cut off meanwhile. A virtual host of that name with another mark, or with none, is a
// registration.Conflict and stays as it is. (RabbitMQ has no request that only
// creates; one sent by somebody else between the look and ours would lose its
// description.)
//
// The default queue type is set to classic where RabbitMQ knows that setting
// (3.11 and newer): Nova asks for quorum queues by name, and its reply and
// fanout queues must not become quorum queues on a broker with another default.
func (c *Client) EnsureVhost(ctx context.Context, name string, mark registration.Mark) error {
	vhost, err := c.vhost(ctx, name)
	if err != nil {
		return err
	}
	if vhost != nil {
		if vhost.Description == string(mark) {
			return c.startVhost(ctx, vhost)
		}
		return &registration.Conflict{Address: c.server.Address, Kind: "vhost", Name: name, Found: vhost.Description, Want: mark}
	}
	response, err := c.api(ctx).PutVhost(name, rabbithole.VhostSettings{Description: string(mark), DefaultQueueType: "classic"})
	return c.write(fmt.Sprintf("create vhost %q", name), response, err)
}

func (c *Client) startVhost(ctx context.Context, vhost *rabbithole.VhostInfo) error {
	for node, state := range vhost.ClusterState {
		if state != stopped {
			continue
		}
		api := c.api(ctx)
		path := "/api/vhosts/" + url.PathEscape(vhost.Name) + "/start/" + url.PathEscape(node)
		start, err := http.NewRequestWithContext(ctx, http.MethodPost, api.Endpoint+path, nil)
		if err != nil {
			return err
		}
		start.SetBasicAuth(api.Username, api.Password)
		response, err := (&http.Client{Transport: request{ctx, c}}).Do(start)
		if err == nil && response.StatusCode >= http.StatusMultipleChoices {
			err = rabbithole.ErrorResponse{StatusCode: response.StatusCode, Reason: response.Status}
			_ = response.Body.Close()
		}
		if err := c.write(fmt.Sprintf("start vhost %q on %s", vhost.Name, node), response, err); err != nil {
			return err
		}
	}
	return nil
}

// vhost returns the virtual host of a name; nil if there is none.
func (c *Client) vhost(ctx context.Context, name string) (*rabbithole.VhostInfo, error) {
	if err := registration.CheckName("vhost", name, longestName); err != nil {
		return nil, err
	}
	vhost, err := c.api(ctx).GetVhost(name)
	if isNotFound(err) {
		return nil, nil //nolint:nilnil // stated above
	}
	if err != nil {
		return nil, c.failure(fmt.Sprintf("read vhost %q", name), err)
	}
	return vhost, nil
}

// DeleteVhost removes the virtual host with its queues, if it carries the
// mark. What is not ours stays, and is no error.
func (c *Client) DeleteVhost(ctx context.Context, name string, mark registration.Mark) error {
	absent, err := c.VhostAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	response, err := c.api(ctx).DeleteVhost(name)
	return c.write(fmt.Sprintf("delete vhost %q", name), response, err)
}

// VhostAbsent tells whether no virtual host of that name carries the mark.
func (c *Client) VhostAbsent(ctx context.Context, name string, mark registration.Mark) (bool, error) {
	vhost, err := c.vhost(ctx, name)
	return err == nil && (vhost == nil || vhost.Description != string(mark)), err
}
