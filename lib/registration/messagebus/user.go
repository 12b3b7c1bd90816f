package messagebus

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// User is a RabbitMQ user with all permissions in one virtual host and none in
// any other.
type User struct {
	Name     string
	Password config.Password
	Vhost    string
}

// apiUser is a user in the management API.
type apiUser struct {
	Tags             tags   `json:"tags"`
	Password         string `json:"password,omitempty"` // never in an answer
	PasswordHash     string `json:"password_hash,omitempty"`
	HashingAlgorithm string `json:"hashing_algorithm,omitempty"`
}

// tags of a user, with commas between them.
type tags string

// UnmarshalJSON accepts a list, and the text with commas of older servers.
func (t *tags) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) != nil {
		return json.Unmarshal(data, (*string)(t))
	}
	*t = tags(strings.Join(list, ","))
	return nil
}

// permission of a user in a virtual host. Each verb has a pattern for the names
// of the queues and exchanges to which it applies.
type permission struct {
	Vhost     string `json:"vhost"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// EnsureUser creates the user with the mark, or corrects its password and its permissions.
// It changes only wrong settings. A user of this name with another mark, or without a
// mark, is a remote.Conflict and is not changed.
func (c *Client) EnsureUser(ctx context.Context, user User, mark remote.Mark) error {
	if strings.Contains(string(mark), ",") || len(mark) > 255 {
		return fmt.Errorf("mark %q cannot be a RabbitMQ tag: it has a comma or more than 255 characters", mark)
	}
	found, err := c.user(ctx, user.Name)
	if err != nil {
		return err
	}
	if found != nil && string(found.Tags) != string(mark) {
		return &remote.Conflict{Address: c.server.Address, Kind: "bus user", Name: user.Name, Found: string(found.Tags), Want: mark}
	}
	if found == nil || !hasPassword(found, user.Password) {
		if err := c.putUser(ctx, user, mark); err != nil {
			return err
		}
	}
	return c.ensurePermissions(ctx, user)
}

// user returns the user of a name, or nil if it does not exist.
func (c *Client) user(ctx context.Context, name string) (found *apiUser, err error) {
	if err := remote.CheckName("bus user", name, longestName); err != nil {
		return nil, err
	}
	err = c.find(ctx, fmt.Sprintf("read user %q", name), &found, "users", name)
	return found, err
}

var hashes = map[string]func() hash.Hash{
	"rabbit_password_hashing_sha256": sha256.New,
	"rabbit_password_hashing_sha512": sha512.New,
}

// hasPassword compares the password with the hash in RabbitMQ's answer: base64 of four
// bytes of salt and the hash of salt and password
// (https://www.rabbitmq.com/docs/passwords). A login would not show whether the password is
// right, because RabbitMQ refuses a user without the tag "management" with any password.
// hasPassword returns false for an unknown algorithm.
func hasPassword(user *apiUser, password config.Password) bool {
	newHash, known := hashes[user.HashingAlgorithm]
	stored, err := base64.StdEncoding.DecodeString(user.PasswordHash)
	if !known || err != nil || len(stored) < 4 {
		return false
	}
	salted := newHash()
	salted.Write(stored[:4])
	salted.Write([]byte(password))
	return subtle.ConstantTimeCompare(stored[4:], salted.Sum(nil)) == 1
}

// putUser creates the user, or sets its password.
func (c *Client) putUser(ctx context.Context, user User, mark remote.Mark) error {
	return c.call(ctx, request{
		doing:  fmt.Sprintf("set the password of user %q", user.Name),
		method: http.MethodPut, path: []string{"users", user.Name},
		body: apiUser{Tags: tags(mark), Password: string(user.Password)},
		hint: "check that the password satisfies RabbitMQ's credential_validator",
	}, nil)
}

func (c *Client) ensurePermissions(ctx context.Context, user User) error {
	if err := remote.CheckName("vhost", user.Vhost, longestName); err != nil {
		return err
	}
	var found []permission
	err := c.find(ctx, fmt.Sprintf("read the permissions of user %q", user.Name), &found, "users", user.Name, "permissions")
	everything := permission{Vhost: user.Vhost, Configure: ".*", Write: ".*", Read: ".*"}
	if err != nil || slices.Contains(found, everything) {
		return err
	}
	return c.put(ctx, fmt.Sprintf("give user %q permissions in vhost %q", user.Name, user.Vhost), everything, "permissions", user.Vhost, user.Name)
}

// DeleteUser deletes the user if it has the mark. A user without the mark is not changed,
// and is no error.
func (c *Client) DeleteUser(ctx context.Context, name string, mark remote.Mark) error {
	absent, err := c.UserAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	return c.delete(ctx, fmt.Sprintf("delete user %q", name), "users", name)
}

// UserAbsent returns whether no user of this name has the mark.
func (c *Client) UserAbsent(ctx context.Context, name string, mark remote.Mark) (bool, error) {
	found, err := c.user(ctx, name)
	return err == nil && (found == nil || string(found.Tags) != string(mark)), err
}
