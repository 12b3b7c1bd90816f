package registration

import (
	"context"
	"strconv"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/registration/database"
)

// Database is a MariaDB. An Account at it owns a database.
type Database struct {
	// DefaultName is the database of a given connection Secret that names none.
	DefaultName string
	// Drop decides whether the database is dropped when its owner is deleted.
	Drop bool
	// Mapped tells whether the owner uses a database already. A database at another location
	// than Former is then not created, because it must be a copy.
	Mapped bool
	// Former is the location of the database in use, "" if it is not known.
	Former string
}

func (Database) kind() string { return "Database" }

func (Database) locator() string { return config.KeyHostname }

func (Database) given() [][]string {
	return [][]string{{config.KeyHostname, config.KeyUser, config.KeyPassword}}
}

func (d Database) parse(secret map[string][]byte) error {
	_, err := config.ParseDatabase(secret, d.DefaultName)
	return err
}

func (Database) address(a Account, in engine.Inputs) (host string, port int, err error) {
	return a.address(in, 3306, "mysql", "mariadb", "database")
}

func (d Database) settings(a Account, in engine.Inputs) (map[string]string, error) {
	host, port, err := d.address(a, in)
	return map[string]string{config.KeyHostname: host, config.KeyPort: strconv.Itoa(port), config.KeyDatabase: a.Name}, err
}

func (d Database) connect(ctx context.Context, a Account, in engine.Inputs) ([]remoteObject, func(), error) {
	admin, err := a.administrator(in)
	if err != nil {
		return nil, nil, err
	}
	host, port, err := d.address(a, in)
	if err != nil {
		return nil, nil, err
	}
	c, err := database.Connect(ctx, database.Server{
		Address: join(host, port), User: admin.User, Password: admin.Password, TLS: admin.TLS, CA: admin.CA,
	})
	if err != nil {
		return nil, nil, err
	}
	mark := a.mark(in)
	schema := remoteObject{
		name:   "database " + a.Name,
		ensure: func() error { return c.EnsureDatabase(ctx, a.Name, mark) },
		absent: func() (bool, error) { return c.DatabaseAbsent(ctx, a.Name, mark) },
	}
	if d.Mapped && d.Former != location(host, port, a.Name) {
		schema.ensure = func() error { return c.RequireDatabase(ctx, a.Name, mark) }
	}
	if d.Drop {
		schema.remove = func() error { return c.DropDatabase(ctx, a.Name, mark) }
	}
	account := database.Account{User: a.user(), Password: a.password(in), Database: a.Name, RequireTLS: admin.TLS}
	return []remoteObject{schema, {
		name:   "account " + account.User,
		ensure: func() error { return c.EnsureAccount(ctx, account) },
		remove: func() error { return c.DropAccount(ctx, account.User) },
		absent: func() (bool, error) { return c.AccountAbsent(ctx, account.User) },
	}}, c.Close, nil
}

func (d Database) remains(a Account) string {
	if d.Drop {
		return "account " + a.user() + " and database " + a.Name
	}
	return "account " + a.user() + " of database " + a.Name
}

// Location returns the address and the name of a database: host:port/name.
func Location(a Account, in engine.Inputs) (string, error) {
	data, err := a.connection(in)
	if err != nil {
		return "", err
	}
	d, err := config.ParseDatabase(data, a.defaultDatabase())
	return location(d.Hostname, d.Port, d.Database), a.unusable(err)
}

func location(host string, port int, name string) string { return join(host, port) + "/" + name }

// WithDatabase logs in with the account itself, and calls do with the name of its database.
func WithDatabase(ctx context.Context, a Account, in engine.Inputs, do func(c *database.Client, name string) error) error {
	data, err := a.connection(in)
	if err != nil {
		return err
	}
	return WithDatabaseOf(ctx, data, a.defaultDatabase(), do)
}

// WithDatabaseOf logs in with the account of a connection Secret, and calls do with the name of
// its database: defaultName if the Secret names none.
func WithDatabaseOf(ctx context.Context, secret map[string][]byte, defaultName string, do func(c *database.Client, name string) error) error {
	d, err := config.ParseDatabase(secret, defaultName)
	if err != nil {
		return engine.Wait("%s", err)
	}
	c, err := database.Connect(ctx, database.Server{
		Address: join(d.Hostname, d.Port), User: d.User, Password: d.Password, TLS: d.TLS, CA: d.CA,
	})
	if err != nil {
		return failure("Database", err)
	}
	defer c.Close()
	return failure("Database", do(c, d.Database))
}

// Answers returns nil if the account finds tables in its database, or if its password is not
// known.
func Answers(ctx context.Context, a Account, in engine.Inputs) error {
	data, err := a.connection(in)
	if err != nil || len(data[config.KeyPassword]) == 0 {
		return err
	}
	return WithDatabaseOf(ctx, data, a.defaultDatabase(), func(c *database.Client, name string) error { return c.CheckTables(ctx, name) })
}

func (a Account) defaultDatabase() string {
	d, _ := a.Server.(Database)
	return d.DefaultName
}
