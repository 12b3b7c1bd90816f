package messagebus

import (
	"context"
	"fmt"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"asterism.dev/operators/nova/internal/registration"
)

// longestName bounds the names of vhosts and users. RabbitMQ would take 255
// bytes.
const longestName = 128

// EnsureVhost creates the virtual host with the mark, unless it exists with
// that mark. A virtual host of that name with another mark, or with none, is a
// registration.Conflict and stays as it is. (RabbitMQ has no request that only
// creates; one sent by somebody else between the look and ours would lose its
// description.)
//
// The default queue type is set to classic where RabbitMQ knows that setting
// (3.11 and newer): Nova asks for quorum queues by name, and its reply and
// fanout queues must not become quorum queues on a broker with another default.
func (c *Client) EnsureVhost(ctx context.Context, name string, mark registration.Mark) error {
	found, exists, err := c.vhostMark(ctx, name)
	if err != nil {
		return err
	}
	if exists {
		if found == string(mark) {
			return nil
		}
		return &registration.Conflict{Address: c.server.Address, Kind: "vhost", Name: name, Found: found, Want: mark}
	}
	response, err := c.api(ctx).PutVhost(name, rabbithole.VhostSettings{Description: string(mark), DefaultQueueType: "classic"})
	return c.write(fmt.Sprintf("create vhost %q", name), response, err)
}

func (c *Client) vhostMark(ctx context.Context, name string) (mark string, exists bool, err error) {
	if err := registration.CheckName("vhost", name, longestName); err != nil {
		return "", false, err
	}
	vhost, err := c.api(ctx).GetVhost(name)
	if isNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, c.failure(fmt.Sprintf("read vhost %q", name), err)
	}
	return vhost.Description, true, nil
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
	found, exists, err := c.vhostMark(ctx, name)
	return err == nil && (!exists || found != string(mark)), err
}
