package messagebus

import (
	"context"
	"fmt"
	"net/http"

	"asterism.dev/lib/registration/remote"
)

// longestName bounds the names of vhosts and users, in bytes. RabbitMQ accepts 255 bytes.
const longestName = 128

// apiVhost is a virtual host in the management API.
type apiVhost struct {
	Description      string            `json:"description"`
	DefaultQueueType string            `json:"default_queue_type,omitempty"`
	ClusterState     map[string]string `json:"cluster_state,omitempty"` // by node
}

// stopped is the state, on a node, of a virtual host that refuses connections.
const stopped = "stopped"

// EnsureVhost creates the virtual host with the mark, unless it exists with this mark. It
// starts the virtual host on nodes on which it is stopped: RabbitMQ leaves it stopped if
// the connection of the request that creates it breaks. A virtual host of this name with
// another mark, or without a mark, is a remote.Conflict and is not changed. (RabbitMQ
// has no request that only creates: a virtual host that another client creates between the
// two requests loses its description.)
//
// The default queue type is set to classic, in RabbitMQ 3.11 and newer: Nova requests
// quorum queues explicitly, and its reply and fanout queues must not become quorum queues
// at a server with another default.
func (c *Client) EnsureVhost(ctx context.Context, name string, mark remote.Mark) error {
	found, err := c.vhost(ctx, name)
	switch {
	case err != nil:
		return err
	case found == nil:
		wanted := apiVhost{Description: string(mark), DefaultQueueType: "classic"}
		return c.put(ctx, fmt.Sprintf("create vhost %q", name), wanted, "vhosts", name)
	case found.Description != string(mark):
		return &remote.Conflict{Address: c.server.Address, Kind: "vhost", Name: name, Found: found.Description, Want: mark}
	}
	return c.startVhost(ctx, name, found.ClusterState)
}

// vhost returns the virtual host of a name, or nil if it does not exist.
func (c *Client) vhost(ctx context.Context, name string) (found *apiVhost, err error) {
	if err := remote.CheckName("vhost", name, longestName); err != nil {
		return nil, err
	}
	err = c.find(ctx, fmt.Sprintf("read vhost %q", name), &found, "vhosts", name)
	return found, err
}

// startVhost starts the virtual host on each node on which its state is stopped.
func (c *Client) startVhost(ctx context.Context, name string, states map[string]string) error {
	for node, state := range states {
		if state != stopped {
			continue
		}
		doing := fmt.Sprintf("start vhost %q on %s", name, remote.Quote(node))
		if err := c.call(ctx, request{doing: doing, method: http.MethodPost, path: []string{"vhosts", name, "start", node}}, nil); err != nil {
			return err
		}
	}
	return nil
}

// DeleteVhost deletes the virtual host and its queues, if it has the mark. A virtual host
// without the mark is not changed, and is no error.
func (c *Client) DeleteVhost(ctx context.Context, name string, mark remote.Mark) error {
	absent, err := c.VhostAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	return c.delete(ctx, fmt.Sprintf("delete vhost %q", name), "vhosts", name)
}

// VhostAbsent returns whether no virtual host of this name has the mark.
func (c *Client) VhostAbsent(ctx context.Context, name string, mark remote.Mark) (bool, error) {
	found, err := c.vhost(ctx, name)
	return err == nil && (found == nil || found.Description != string(mark)), err
}
