package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"asterism.dev/lib/registration/remote"
)

// longestDatabase is MariaDB's limit for the name of a database, in characters.
const longestDatabase = 64

// EnsureDatabase creates the database name with the mark, unless it exists with this mark.
// A database of this name with another mark, or without a mark, is a
// remote.Conflict and is not changed.
func (c *Client) EnsureDatabase(ctx context.Context, name string, mark remote.Mark) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	exists, err := c.checkDatabase(ctx, name, mark)
	if exists || err != nil {
		return err
	}
	// utf8mb3 is the character set of the tables in Nova's migrations
	// (nova/db/*/migrations, mysql_charset="utf8").
	err = c.exec(ctx, "CREATE DATABASE "+quoteName(name)+" CHARACTER SET utf8mb3 COMMENT ?", string(mark))
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == errDatabaseExists {
		_, err = c.checkDatabase(ctx, name, mark) // another client created it meanwhile
	}
	return err
}

// RequireDatabase returns an error unless the database exists with the mark: remote.Missing,
// or remote.Conflict.
func (c *Client) RequireDatabase(ctx context.Context, name string, mark remote.Mark) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	exists, err := c.checkDatabase(ctx, name, mark)
	if !exists && err == nil {
		err = &remote.Missing{Address: c.server.Address, Kind: "database", Name: name}
	}
	return err
}

// checkDatabase returns whether the database exists with the mark. It returns a Conflict
// if the database has another mark, or none.
func (c *Client) checkDatabase(ctx context.Context, name string, mark remote.Mark) (exists bool, err error) {
	found, exists, err := c.databaseMark(ctx, name)
	if exists && found != string(mark) {
		err = &remote.Conflict{Address: c.server.Address, Kind: "database", Name: name, Found: found, Want: mark}
	}
	return exists, err
}

func (c *Client) databaseMark(ctx context.Context, name string) (found string, exists bool, err error) {
	if err := remote.CheckName("database", name, longestDatabase); err != nil {
		return "", false, err
	}
	err = c.queryRow(ctx, &found, "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return found, err == nil, err
}

// DropDatabase drops the database name if it has the mark. A database without the mark is
// not changed, and is no error.
func (c *Client) DropDatabase(ctx context.Context, name string, mark remote.Mark) error {
	absent, err := c.DatabaseAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	return c.exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name))
}

// DatabaseAbsent returns whether no database of this name has the mark.
func (c *Client) DatabaseAbsent(ctx context.Context, name string, mark remote.Mark) (bool, error) {
	found, exists, err := c.databaseMark(ctx, name)
	return err == nil && !(exists && found == string(mark)), err
}

// CheckTables returns an error if the account finds no tables in the database.
func (c *Client) CheckTables(ctx context.Context, name string) error {
	var tables int
	err := c.queryRow(ctx, &tables, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", name)
	if err == nil && tables == 0 {
		err = fmt.Errorf("%s: database %q has no tables", c.server.Address, name)
	}
	return err
}
