package backend

import (
	"context"
	"strconv"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	"asterism.dev/operators/nova/internal/database"
)

// Database is a MariaDB. A Backend of this kind is a database with its account.
type Database struct {
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

func (Database) parse(secret map[string][]byte) error {
	_, err := config.ParseDatabase(secret, "nova")
	return err
}

func (Database) address(b Backend, in engine.Inputs) (host string, port int, err error) {
	return b.address(in, 3306, "mysql", "mariadb", "database")
}

func (d Database) settings(b Backend, in engine.Inputs) (map[string]string, error) {
	host, port, err := d.address(b, in)
	return map[string]string{config.KeyHostname: host, config.KeyPort: strconv.Itoa(port), config.KeyDatabase: b.Name}, err
}

func (d Database) connect(ctx context.Context, b Backend, in engine.Inputs) ([]remoteObject, func(), error) {
	admin, err := b.administrator(in)
	if err != nil {
		return nil, nil, err
	}
	host, port, err := d.address(b, in)
	if err != nil {
		return nil, nil, err
	}
	c, err := database.Connect(ctx, database.Server{
		Address: join(host, port), User: admin.User, Password: admin.Password, TLS: admin.TLS, CA: admin.CA,
	})
	if err != nil {
		return nil, nil, err
	}
	mark := b.mark(in)
	schema := remoteObject{
		name:   "database " + b.Name,
		ensure: func() error { return c.EnsureDatabase(ctx, b.Name, mark) },
		absent: func() (bool, error) { return c.DatabaseAbsent(ctx, b.Name, mark) },
	}
	if d.Mapped && d.Former != location(host, port, b.Name) {
		schema.ensure = func() error { return c.RequireDatabase(ctx, b.Name, mark) }
	}
	if d.Drop {
		schema.remove = func() error { return c.DropDatabase(ctx, b.Name, mark) }
	}
	account := database.Account{User: b.account(), Password: b.password(in), Database: b.Name, RequireTLS: admin.TLS}
	return []remoteObject{schema, {
		name:   "account " + account.User,
		ensure: func() error { return c.EnsureAccount(ctx, account) },
		remove: func() error { return c.DropAccount(ctx, account.User) },
		absent: func() (bool, error) { return c.AccountAbsent(ctx, account.User) },
	}}, c.Close, nil
}

func (d Database) remains(b Backend) string {
	if d.Drop {
		return "account " + b.account() + " and database " + b.Name
	}
	return "account " + b.account() + " of database " + b.Name
}

// Location returns the address and the name of a database: host:port/name.
func Location(b Backend, in engine.Inputs) (string, error) {
	data, err := b.connection(in)
	if err != nil {
		return "", err
	}
	d, err := config.ParseDatabase(data, "nova")
	return location(d.Hostname, d.Port, d.Database), b.unusable(err)
}

func location(host string, port int, name string) string { return join(host, port) + "/" + name }

// Cell returns the content of a cell's database.
func Cell(ctx context.Context, b Backend, in engine.Inputs) (cell database.Cell, err error) {
	data, err := b.connection(in)
	if err != nil {
		return cell, err
	}
	return cell, withAccount(ctx, data, "nova", func(c *database.Client, name string) error {
		cell, err = c.Cell(ctx, name)
		return err
	})
}

// Mapping returns a cell's entry in the API database, nil for none. secret is the connection
// Secret of the API database.
func Mapping(ctx context.Context, secret map[string][]byte, uuid string) (mapping *database.Mapping, err error) {
	return mapping, withAccount(ctx, secret, "nova_api", func(c *database.Client, name string) error {
		mapping, err = c.Mapping(ctx, name, uuid)
		return err
	})
}

// EntryOf returns the entry of the cell called cell in the API database, nil for none.
func EntryOf(ctx context.Context, secret map[string][]byte, cell string) (entry *database.Entry, err error) {
	return entry, withAccount(ctx, secret, "nova_api", func(c *database.Client, name string) error {
		entry, err = c.EntryOf(ctx, name, cell)
		return err
	})
}

// Answers returns nil if the backend's own account finds tables in the database, or if the
// password of the account is not known.
func Answers(ctx context.Context, b Backend, in engine.Inputs) error {
	data, err := b.connection(in)
	if err != nil || len(data[config.KeyPassword]) == 0 {
		return err
	}
	return withAccount(ctx, data, "nova", func(c *database.Client, name string) error { return c.CheckTables(ctx, name) })
}

// withAccount logs in with the account of a connection Secret. defaultName is the database of
// a Secret that names none.
func withAccount(ctx context.Context, secret map[string][]byte, defaultName string, do func(c *database.Client, name string) error) error {
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
