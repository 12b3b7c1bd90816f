package messagebus

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"asterism.dev/lib/common/config"

	"asterism.dev/operators/nova/internal/registration"
)

// User is a RabbitMQ user with all permissions in one virtual host and none in
// any other.
type User struct {
	Name     string
	Password config.Password
	Vhost    string
}

// everything is the permission of a user in its own virtual host.
var everything = rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"}

// EnsureUser creates the user with the mark, or puts its password and its
// permissions right. It writes only what is wrong. A user of that name with
// another mark, or with none, is a registration.Conflict and stays as it is.
func (c *Client) EnsureUser(ctx context.Context, user User, mark registration.Mark) error {
	if strings.Contains(string(mark), ",") || len(mark) > 255 {
		return fmt.Errorf("mark %q cannot be a RabbitMQ tag: it has a comma or more than 255 characters", mark)
	}
	found, err := c.findUser(ctx, user.Name)
	if err != nil {
		return err
	}
	if found != nil && tag(found) != string(mark) {
		return &registration.Conflict{Address: c.server.Address, Kind: "bus user", Name: user.Name, Found: tag(found), Want: mark}
	}
	if found == nil || !hasPassword(found, user.Password) {
		if err := c.putUser(ctx, user, mark); err != nil {
			return err
		}
	}
	return c.ensurePermissions(ctx, user)
}

// findUser returns nil if there is no such user.
func (c *Client) findUser(ctx context.Context, name string) (*rabbithole.UserInfo, error) {
	if err := registration.CheckName("bus user", name, longestName); err != nil {
		return nil, err
	}
	user, err := c.api(ctx).GetUser(name)
	if isNotFound(err) {
		return nil, nil
	}
	return user, c.failure(fmt.Sprintf("read user %q", name), err)
}

func tag(user *rabbithole.UserInfo) string { return strings.Join(user.Tags, ",") }

// hasPassword compares with the hash that RabbitMQ tells administrators:
// base64 of four bytes of salt and the hash of salt and password
// (https://www.rabbitmq.com/docs/passwords). A login attempt would tell less:
// a user without the tag "management" is refused with any password. A hash of
// an unknown kind counts as wrong.
func hasPassword(user *rabbithole.UserInfo, password config.Password) bool {
	stored, err := base64.StdEncoding.DecodeString(user.PasswordHash)
	if err != nil || len(stored) < 4 {
		return false
	}
	salted := append(stored[:4:4], password...)
	var hash []byte
	switch user.HashingAlgorithm {
	case rabbithole.HashingAlgorithmSHA256:
		sum := sha256.Sum256(salted)
		hash = sum[:]
	case rabbithole.HashingAlgorithmSHA512:
		sum := sha512.Sum512(salted)
		hash = sum[:]
	default:
		return false
	}
	return subtle.ConstantTimeCompare(stored[4:], hash) == 1
}

// putUser creates the user, or sets its password. RabbitMQ's reason for a
// refusal is left out, because it may quote the request.
func (c *Client) putUser(ctx context.Context, user User, mark registration.Mark) error {
	response, err := c.api(ctx).PutUser(user.Name, rabbithole.UserSettings{
		Password: string(user.Password),
		Tags:     rabbithole.UserTags{string(mark)},
	})
	if answer, ok := errors.AsType[rabbithole.ErrorResponse](err); ok {
		answer.Reason = "does the password fit RabbitMQ's credential_validator?"
		err = answer
	}
	return c.write(fmt.Sprintf("set the password of user %q", user.Name), response, err)
}

func (c *Client) ensurePermissions(ctx context.Context, user User) error {
	if err := registration.CheckName("vhost", user.Vhost, longestName); err != nil {
		return err
	}
	found, err := c.api(ctx).ListPermissionsOf(user.Name)
	if err != nil {
		return c.failure(fmt.Sprintf("read the permissions of user %q", user.Name), err)
	}
	for _, in := range found {
		if in.Vhost == user.Vhost && in.Configure == everything.Configure && in.Write == everything.Write && in.Read == everything.Read {
			return nil
		}
	}
	response, err := c.api(ctx).UpdatePermissionsIn(user.Vhost, user.Name, everything)
	return c.write(fmt.Sprintf("give user %q permissions in vhost %q", user.Name, user.Vhost), response, err)
}

// DeleteUser removes the user if it carries the mark. What is not ours stays,
// and is no error.
func (c *Client) DeleteUser(ctx context.Context, name string, mark registration.Mark) error {
	absent, err := c.UserAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	response, err := c.api(ctx).DeleteUser(name)
	return c.write(fmt.Sprintf("delete user %q", name), response, err)
}

// UserAbsent tells whether no user of that name carries the mark.
func (c *Client) UserAbsent(ctx context.Context, name string, mark registration.Mark) (bool, error) {
	user, err := c.findUser(ctx, name)
	return err == nil && (user == nil || tag(user) != string(mark)), err
}
