//go:build e2e

// Tests against a real RabbitMQ, whose address and account these variables have:
//
//	ASTERISM_RABBITMQ_URL       its management API: http://host:port or https://host:port
//	ASTERISM_RABBITMQ_USER      an account with the tag administrator
//	ASTERISM_RABBITMQ_PASSWORD  its password
//	ASTERISM_RABBITMQ_CA_FILE   optional: the CA (PEM) to trust
//
// The tests create virtual hosts and users with random names, and delete them.

package messagebus

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

const otherMark = remote.Mark("asterism c/openstack/other")

func realServer(t *testing.T) Server {
	t.Helper()
	parsed, err := url.Parse(registrationtest.Env(t, "ASTERISM_RABBITMQ_URL"))
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		Address:  parsed.Host,
		User:     registrationtest.Env(t, "ASTERISM_RABBITMQ_USER"),
		Password: config.Password(registrationtest.Env(t, "ASTERISM_RABBITMQ_PASSWORD")),
		TLS:      parsed.Scheme == "https",
		CA:       registrationtest.CAFile(t, "ASTERISM_RABBITMQ_CA_FILE"),
	}
}

// recorded returns a client of the real server, the writes of the client, and a name. It
// deletes the user and the virtual host of this name after the test.
func recorded(t *testing.T) (*Client, *registrationtest.Writes, string) {
	t.Helper()
	server, name := realServer(t), registrationtest.Name(t, "api")
	direct := connect(t, server)
	t.Cleanup(func() { remove(t, direct, name) })
	target := registrationtest.Env(t, "ASTERISM_RABBITMQ_URL")
	proxy, writes := registrationtest.RecordWrites(t, target, server.CA)
	parsed, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	server.Address, server.TLS = parsed.Host, false
	return connect(t, server), writes, name
}

func connect(t *testing.T, server Server) *Client {
	t.Helper()
	client, err := Connect(registrationtest.Context(t), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func remove(t *testing.T, client *Client, name string) {
	t.Helper()
	for _, kind := range []string{"users", "vhosts"} {
		if err := client.delete(context.Background(), "clean up", kind, name); err != nil {
			t.Error(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wrote(t *testing.T, writes *registrationtest.Writes, want ...string) {
	t.Helper()
	if got := writes.Take(); !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// passwordWorks logs in as the user. With the right password, RabbitMQ refuses the user
// because it lacks the tag management, and not with "Login failed".
func passwordWorks(t *testing.T, name string, password config.Password) bool {
	t.Helper()
	server := realServer(t)
	server.User, server.Password = name, password
	_, err := Connect(registrationtest.Context(t), server)
	refused, ok := errors.AsType[*remote.Denied](err)
	if !ok || refused.Account != name {
		t.Fatalf("got %v", err)
	}
	return refused.Reason == "Not management user"
}

func TestVhostAndUserAreCreatedOnceWithTheirMark(t *testing.T) {
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := User{Name: name, Password: password, Vhost: name}
	for range 3 {
		must(t, client.EnsureVhost(ctx, name, mark))
		must(t, client.EnsureUser(ctx, user, mark))
	}
	wrote(t, writes, "PUT /api/vhosts/"+name, "PUT /api/users/"+name, "PUT /api/permissions/"+name+"/"+name)

	vhost, err := client.vhost(ctx, name)
	must(t, err)
	if vhost.Description != string(mark) {
		t.Errorf("vhost %+v", vhost)
	}
	found, err := client.user(ctx, name)
	must(t, err)
	if found.Tags != tags(mark) {
		t.Errorf("user's tags %q", found.Tags)
	}
	var permissions []permission
	must(t, client.find(ctx, "read the permissions", &permissions, "users", name, "permissions"))
	if len(permissions) != 1 || permissions[0] != (permission{Vhost: name, Configure: ".*", Write: ".*", Read: ".*"}) {
		t.Errorf("permissions %+v", permissions)
	}
}

func TestVhostAndUserAreDeleted(t *testing.T) {
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	absent := func() (user, vhost bool) {
		user, err := client.UserAbsent(ctx, name, mark)
		must(t, err)
		vhost, err = client.VhostAbsent(ctx, name, mark)
		must(t, err)
		return user, vhost
	}
	if user, vhost := absent(); !user || !vhost {
		t.Error("user or vhost exists before its creation")
	}
	must(t, client.EnsureVhost(ctx, name, mark))
	must(t, client.EnsureUser(ctx, User{Name: name, Password: password, Vhost: name}, mark))
	if user, vhost := absent(); user || vhost {
		t.Error("user or vhost is absent after its creation")
	}
	writes.Take()
	for range 2 {
		must(t, client.DeleteUser(ctx, name, mark))
		must(t, client.DeleteVhost(ctx, name, mark))
	}
	wrote(t, writes, "DELETE /api/users/"+name, "DELETE /api/vhosts/"+name)
	if user, vhost := absent(); !user || !vhost {
		t.Error("user or vhost exists after its deletion")
	}
}

func TestForeignVhostAndUserAreConflictsAndStay(t *testing.T) {
	for _, found := range []string{"", string(otherMark), "management"} {
		client, writes, name := recorded(t)
		ctx := registrationtest.Context(t)
		must(t, client.put(ctx, "create the vhost", apiVhost{Description: found}, "vhosts", name))
		must(t, client.put(ctx, "create the user", apiUser{Password: "other", Tags: tags(found)}, "users", name))
		writes.Take()

		user := User{Name: name, Password: password, Vhost: name}
		for kind, err := range map[string]error{
			"vhost": client.EnsureVhost(ctx, name, mark), "bus user": client.EnsureUser(ctx, user, mark),
		} {
			conflict, ok := errors.AsType[*remote.Conflict](err)
			if !ok || conflict.Kind != kind || conflict.Name != name || conflict.Found != found || conflict.Want != mark {
				t.Errorf("got %v", err)
			}
		}
		must(t, client.DeleteUser(ctx, name, mark))
		must(t, client.DeleteVhost(ctx, name, mark))
		wrote(t, writes)
	}
}

func TestDamagedUserIsRepaired(t *testing.T) {
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	user := User{Name: name, Password: password, Vhost: name}
	must(t, client.EnsureVhost(ctx, name, mark))
	must(t, client.EnsureUser(ctx, user, mark))

	must(t, client.put(ctx, "change the password", apiUser{Password: "other", Tags: tags(mark)}, "users", name))
	writes.Take()
	must(t, client.EnsureUser(ctx, user, mark))
	wrote(t, writes, "PUT /api/users/"+name)

	must(t, client.put(ctx, "take a permission", permission{Vhost: name, Configure: ".*", Write: ".*"}, "permissions", name, name))
	writes.Take()
	must(t, client.EnsureUser(ctx, user, mark))
	wrote(t, writes, "PUT /api/permissions/"+name+"/"+name)
}

func TestAnyPasswordWorks(t *testing.T) {
	client, writes, name := recorded(t)
	ctx := registrationtest.Context(t)
	must(t, client.EnsureVhost(ctx, name, mark))
	for _, password := range registrationtest.Passwords(t, 20) {
		user := User{Name: name, Password: password, Vhost: name}
		must(t, client.EnsureUser(ctx, user, mark))
		writes.Take()
		must(t, client.EnsureUser(ctx, user, mark))
		wrote(t, writes)
		if !passwordWorks(t, name, password) {
			t.Errorf("%q is not the password", string(password))
		}
		if passwordWorks(t, name, password+"x") {
			t.Error("a wrong password works: this test proves nothing")
		}
	}
}

func TestWrongPasswordIsDeniedAndNotInTheError(t *testing.T) {
	server := realServer(t)
	server.Password = password
	_, err := Connect(registrationtest.Context(t), server)
	refused, ok := errors.AsType[*remote.Denied](err)
	if !ok || refused.Account != server.User || refused.Address != server.Address {
		t.Errorf("got %v", err)
	}
	registrationtest.MustNotTell(t, err, password)
}
