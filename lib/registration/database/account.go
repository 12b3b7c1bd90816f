package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// longestUser is MariaDB's limit for the name of an account, in characters.
const longestUser = 80

// Account is a database account, valid from any host, with all privileges on
// one database and none on any other.
type Account struct {
	User       string
	Password   config.Password
	Database   string
	RequireTLS bool // REQUIRE SSL; needs Server.TLS
}

// EnsureAccount creates the account, or corrects its password, its TLS requirement and its
// privileges. It first logs in as the account, and changes only wrong settings.
func (c *Client) EnsureAccount(ctx context.Context, account Account) error {
	if err := account.check(c.server); err != nil {
		return err
	}
	grants, err := c.ownGrants(ctx, account)
	if err != nil {
		return err
	}
	if grants == nil || requiresTLS(grants) != account.RequireTLS {
		if err := c.setPassword(ctx, account); err != nil {
			return err
		}
	}
	if slices.Contains(grants, account.grant()) {
		return nil
	}
	return c.exec(ctx, account.grant())
}

func (a Account) check(server Server) error {
	if a.RequireTLS && !server.TLS {
		return fmt.Errorf("account %q requires TLS, but TLS is off for %s", a.User, server.Address)
	}
	return errors.Join(
		remote.CheckName("database account", a.User, longestUser),
		remote.CheckName("database", a.Database, longestDatabase),
	)
}

func accountName(user string) string { return quoteName(user) + "@" + quoteName("%") }

// grant returns the statement that gives the privileges, in the form of SHOW GRANTS. In
// its name of the database, "_" and "%" are wildcards unless they are escaped.
func (a Account) grant() string {
	pattern := strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(a.Database)
	return "GRANT ALL PRIVILEGES ON " + quoteName(pattern) + ".* TO " + accountName(a.User)
}

func requiresTLS(grants []string) bool {
	return slices.ContainsFunc(grants, func(grant string) bool { return strings.Contains(grant, " REQUIRE SSL") })
}

// ownGrants logs in as the account and returns the result of SHOW GRANTS, or nil if the
// server denies the login.
func (c *Client) ownGrants(ctx context.Context, account Account) ([]string, error) {
	server := c.server
	server.User, server.Password = account.User, account.Password
	db, err := server.open()
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	grants := []string{}
	err = server.queryRows(ctx, db, "SHOW GRANTS", func(rows *sql.Rows) error {
		var grant string
		err := rows.Scan(&grant)
		grants = append(grants, grant)
		return err
	})
	if _, denied := errors.AsType[*remote.Denied](err); denied {
		return nil, nil
	}
	return grants, err
}

func (c *Client) setPassword(ctx context.Context, account Account) error {
	absent, err := c.AccountAbsent(ctx, account.User)
	if err != nil {
		return err
	}
	statement := "ALTER USER "
	if absent {
		statement = "CREATE USER IF NOT EXISTS "
	}
	require := " REQUIRE NONE"
	if account.RequireTLS {
		require = " REQUIRE SSL"
	}
	return c.execSecret(ctx, fmt.Sprintf("set the password of account %q", account.User),
		statement+accountName(account.User)+" IDENTIFIED BY ?"+require, string(account.Password))
}

// DropAccount drops the account if it exists.
func (c *Client) DropAccount(ctx context.Context, user string) error {
	if err := remote.CheckName("database account", user, longestUser); err != nil {
		return err
	}
	return c.exec(ctx, "DROP USER IF EXISTS "+accountName(user))
}

// AccountAbsent returns whether the account does not exist.
func (c *Client) AccountAbsent(ctx context.Context, user string) (bool, error) {
	if err := remote.CheckName("database account", user, longestUser); err != nil {
		return false, err
	}
	var count int
	err := c.queryRow(ctx, &count, "SELECT COUNT(*) FROM mysql.user WHERE User = ? AND Host = '%'", user)
	return err == nil && count == 0, err
}
