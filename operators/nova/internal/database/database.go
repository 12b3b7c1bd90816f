package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"asterism.dev/operators/nova/internal/registration"
)

// longestDatabase is MariaDB's limit for the name of a database, in characters.
const longestDatabase = 64

// EnsureDatabase creates the database name with the mark, unless it exists with this mark.
// A database of this name with another mark, or without a mark, is a
// registration.Conflict and is not changed.
func (c *Client) EnsureDatabase(ctx context.Context, name string, mark registration.Mark) error {
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

// checkDatabase returns whether the database exists with the mark. It returns a Conflict
// if the database has another mark, or none.
func (c *Client) checkDatabase(ctx context.Context, name string, mark registration.Mark) (exists bool, err error) {
	found, exists, err := c.databaseMark(ctx, name)
	if exists && found != string(mark) {
		err = &registration.Conflict{Address: c.server.Address, Kind: "database", Name: name, Found: found, Want: mark}
	}
	return exists, err
}

func (c *Client) databaseMark(ctx context.Context, name string) (found string, exists bool, err error) {
	if err := registration.CheckName("database", name, longestDatabase); err != nil {
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
func (c *Client) DropDatabase(ctx context.Context, name string, mark registration.Mark) error {
	absent, err := c.DatabaseAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	return c.exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name))
}

// DatabaseAbsent returns whether no database of this name has the mark.
func (c *Client) DatabaseAbsent(ctx context.Context, name string, mark registration.Mark) (bool, error) {
	found, exists, err := c.databaseMark(ctx, name)
	return err == nil && !(exists && found == string(mark)), err
}

// Hosts are the compute hosts in a cell's database, as nova-manage cell_v2 discover_hosts
// finds them (nova/objects/host_mapping.py: compute_nodes that are not deleted; unmapped
// if mapped < 1).
type Hosts struct {
	Mapped   int
	Unmapped []string // host names, sorted
}

// Hosts reads the hosts of the cell whose database is name.
//
// The new compute_nodes rows of a host that already has a mapping stay unmapped, because
// discover_hosts marks a row only when it creates a mapping. So callers must not wait until
// Unmapped is empty, and run discovery again only when the list changes.
func (c *Client) Hosts(ctx context.Context, name string) (Hosts, error) {
	if err := registration.CheckName("database", name, longestDatabase); err != nil {
		return Hosts{}, err
	}
	var hosts Hosts
	query := "SELECT COALESCE(host, ''), MIN(COALESCE(mapped, 1)) < 1 FROM " + quoteName(name) + ".compute_nodes WHERE deleted = 0 GROUP BY host ORDER BY host"
	err := c.server.queryRows(ctx, c.db, query, func(rows *sql.Rows) error {
		var host string
		var unmapped bool
		err := rows.Scan(&host, &unmapped)
		if unmapped {
			hosts.Unmapped = append(hosts.Unmapped, host)
		} else {
			hosts.Mapped++
		}
		return err
	})
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if ok && (refused.Number == errTableMissing || refused.Number == errDatabaseMissing) {
		err = fmt.Errorf("%s: database %q has no table compute_nodes: its schema is not synchronised yet", c.server.Address, name)
	}
	if err != nil {
		return Hosts{}, err
	}
	return hosts, nil
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
