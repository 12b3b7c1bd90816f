package backend

import (
	"context"
	"fmt"
	"strconv"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	"asterism.dev/operators/nova/internal/database"
	"asterism.dev/operators/nova/internal/registration"
)

// Database is one database with its account.
type Database struct {
	Server
	// Purpose names the connection Secret: <owner>-<purpose>-<hash>.
	Purpose string
	// Name of the database. The account is named after it.
	Name string
	// Drop the database when its owner is deleted.
	Drop bool
}

// Check refuses a given Secret that no service could use.
func (d Database) Check(in engine.Inputs) error {
	return d.check(in, func(data map[string][]byte) error {
		_, err := config.ParseDatabase(data, "nova")
		return err
	})
}

// Ensure registers the database and its account.
func (d Database) Ensure(ctx context.Context, in engine.Inputs) error {
	if d.Connection.Given() {
		return nil
	}
	server, err := d.server(in)
	if err != nil {
		return err
	}
	return failure("Database", withDatabase(ctx, server, func(c *database.Client) error {
		if err := c.EnsureDatabase(ctx, d.Name, d.Owner.Mark(in)); err != nil {
			return err
		}
		return c.EnsureAccount(ctx, database.Account{
			User: d.account(), Password: d.Owner.password(in, d.Key), Database: d.Name, RequireTLS: server.TLS,
		})
	}))
}

// Secret returns the name of the connection Secret and, if we make it, the
// Secret itself.
func (d Database) Secret(in engine.Inputs) (string, []engine.Child, error) {
	if d.Connection.Given() {
		return d.Connection.ConnectionSecretRef.Name, nil, nil
	}
	host, port, err := d.address(in)
	if err != nil {
		return "", nil, err
	}
	data := map[string]string{
		config.KeyHostname: host,
		config.KeyPort:     strconv.Itoa(port),
		config.KeyUser:     d.account(),
		config.KeyPassword: string(d.Owner.password(in, d.Key)),
		config.KeyDatabase: d.Name,
	}
	addTLS(data, in.Secret(d.Connection.AdminSecretRef.Name))
	name, secret, err := connectionSecret(d.Owner.Object.GetName()+"-"+d.Purpose, data)
	return name, []engine.Child{secret}, err
}

// Remove drops the account and, if that is the policy, the database, and looks
// whether they are gone.
func (d Database) Remove(ctx context.Context, in engine.Inputs) error {
	if d.Connection.Given() {
		return nil
	}
	return removal(d.Owner, d.left(), d.gone(in), func() error {
		server, err := d.server(in)
		if err != nil {
			return err
		}
		return failure("Database", withDatabase(ctx, server, func(c *database.Client) error { return d.remove(ctx, c, d.Owner.Mark(in)) }))
	})
}

// left is what stays behind if nothing can be removed.
func (d Database) left() string {
	what := "account %s of database %s at Service %s"
	if d.Drop {
		what = "account %s and database %s at Service %s"
	}
	return fmt.Sprintf(what, d.account(), d.Name, d.Connection.ServiceRef.Name)
}

func (d Database) remove(ctx context.Context, c *database.Client, mark registration.Mark) error {
	if err := c.DropAccount(ctx, d.account()); err != nil {
		return err
	}
	if gone, err := c.AccountAbsent(ctx, d.account()); err != nil || !gone {
		return orStillThere(err, "account "+d.account())
	}
	if !d.Drop {
		return nil
	}
	if err := c.DropDatabase(ctx, d.Name, mark); err != nil {
		return err
	}
	gone, err := c.DatabaseAbsent(ctx, d.Name, mark)
	if err != nil || !gone {
		return orStillThere(err, "database "+d.Name)
	}
	return nil
}

func (d Database) account() string { return d.Owner.Account(d.Name) }

func (d Database) address(in engine.Inputs) (string, int, error) {
	return address(in, d.Connection.ServiceRef.Name, "mysql", "mariadb", "database")
}

func (d Database) server(in engine.Inputs) (database.Server, error) {
	admin, err := administrator(in, d.Connection.AdminSecretRef.Name)
	if err != nil {
		return database.Server{}, err
	}
	host, port, err := d.address(in)
	return database.Server{
		Address: join(host, port), User: admin.User, Password: admin.Password, TLS: admin.TLS, CA: admin.CA,
	}, err
}

func withDatabase(ctx context.Context, server database.Server, do func(*database.Client) error) error {
	c, err := database.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// Hosts are the compute hosts that a cell's database knows, asked with the
// cell's own account.
func Hosts(ctx context.Context, secret map[string][]byte) (database.Hosts, error) {
	d, err := config.ParseDatabase(secret, "nova")
	if err != nil {
		return database.Hosts{}, engine.Wait("%s", err)
	}
	var hosts database.Hosts
	server := database.Server{
		Address: join(d.Hostname, d.Port), User: d.User, Password: d.Password, TLS: d.TLS, CA: d.CA,
	}
	err = withDatabase(ctx, server, func(c *database.Client) error {
		hosts, err = c.Hosts(ctx, d.Database)
		return err
	})
	return hosts, failure("Database", err)
}

func administrator(in engine.Inputs, secret string) (config.Administrator, error) {
	data := in.Secret(secret)
	if data == nil {
		return config.Administrator{}, engine.Wait("Secret %s does not exist", secret)
	}
	admin, err := config.ParseAdministrator(data)
	if err != nil {
		return admin, engine.Wait("Secret %s: %s", secret, err)
	}
	return admin, nil
}

// addTLS hands on how the administrator's connection is secured.
func addTLS(data map[string]string, admin map[string][]byte) {
	for _, key := range []string{config.KeyTLS, config.KeyCA} {
		if value := admin[key]; len(value) > 0 {
			data[key] = string(value)
		}
	}
}

func orStillThere(err error, what string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is still there", what) //nolint:err113 // for the condition alone
}
