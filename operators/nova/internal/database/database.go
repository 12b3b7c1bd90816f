package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"asterism.dev/operators/nova/internal/registration"
)

// longestDatabase is MariaDB's limit on a database's name.
const longestDatabase = 64

// EnsureDatabase creates the database name with the mark, unless it exists
// with that mark. A database of that name with another mark, or with none, is
// a registration.Conflict and stays as it is.
func (c *Client) EnsureDatabase(ctx context.Context, name string, mark registration.Mark) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	exists, err := c.checkDatabase(ctx, name, mark)
	if exists || err != nil {
		return err
	}
	// utf8mb3 is the character set that Nova's own migrations give their
	// tables (nova/db/*/migrations, mysql_charset="utf8").
	err = c.exec(ctx, "CREATE DATABASE "+quoteName(name)+" CHARACTER SET utf8mb3 COMMENT ?", string(mark))
	if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == errDatabaseExists {
		_, err = c.checkDatabase(ctx, name, mark) // somebody was faster
	}
	return err
}

// checkDatabase tells whether the database exists with the mark. With another
// mark it returns a Conflict.
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

// DropDatabase removes the database name with all that is in it, if it carries
// the mark. A database without the mark stays, and is no error.
func (c *Client) DropDatabase(ctx context.Context, name string, mark registration.Mark) error {
	absent, err := c.DatabaseAbsent(ctx, name, mark)
	if absent || err != nil {
		return err
	}
	return c.exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(name))
}

// DatabaseAbsent tells whether no database of that name carries the mark.
func (c *Client) DatabaseAbsent(ctx context.Context, name string, mark registration.Mark) (bool, error) {
	found, exists, err := c.databaseMark(ctx, name)
	return err == nil && !(exists && found == string(mark)), err
}

// Hosts are the compute hosts in a cell's database, as nova-manage cell_v2
// discover_hosts sees them (nova/objects/host_mapping.py: compute_nodes that
// are not deleted, and mapped < 1).
type Hosts struct {
	Mapped   int
	Unmapped []string // host names, sorted
}

// Hosts reads the hosts of the cell whose database is name.
//
// A host that has a mapping already keeps its new compute_nodes rows unmapped
// for good, because discover_hosts marks a row only where it creates a
// mapping. So do not wait for Unmapped to become empty: discover again when
// the list has changed.
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

// CheckTables returns an error if the database has no tables that the account may
// use.
func (c *Client) CheckTables(ctx context.Context, name string) error {
	var tables int
	err := c.queryRow(ctx, &tables, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", name)
	if err == nil && tables == 0 {
		err = fmt.Errorf("%s: database %q has no tables", c.server.Address, name)
	}
	return err
}
