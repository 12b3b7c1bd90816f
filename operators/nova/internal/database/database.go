package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

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

// RequireDatabase returns an error unless the database exists with the mark.
func (c *Client) RequireDatabase(ctx context.Context, name string, mark registration.Mark) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	exists, err := c.checkDatabase(ctx, name, mark)
	if !exists && err == nil {
		err = fmt.Errorf("%s: database %q does not exist", c.server.Address, name)
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

// Cell is the content of a cell's database. Hosts are those that nova-manage cell_v2
// discover_hosts finds (nova/objects/host_mapping.py: compute_nodes that are not deleted;
// unmapped if mapped < 1).
type Cell struct {
	Mapped   []string // names of hosts, sorted
	Unmapped []string
	Servers  int // also of servers that are on no host
	// OldestService is the smallest version of a service, a number that each release of
	// Nova increases (nova/objects/service.py); 0 without a service.
	OldestService int
}

// Cell reads the content of the cell whose database is name.
//
// The new compute_nodes rows of a host that already has a mapping stay unmapped, because
// discover_hosts marks a row only when it creates a mapping. So callers must not wait until
// Unmapped is empty, and run discovery again only when the list changes.
func (c *Client) Cell(ctx context.Context, name string) (Cell, error) {
	if err := registration.CheckName("database", name, longestDatabase); err != nil {
		return Cell{}, err
	}
	var cell Cell
	schema := quoteName(name)
	query := "SELECT COALESCE(host, ''), MIN(COALESCE(mapped, 1)) < 1 FROM " + schema + ".compute_nodes WHERE deleted = 0 GROUP BY host ORDER BY host"
	err := c.server.queryRows(ctx, c.db, query, func(rows *sql.Rows) error {
		var host string
		var unmapped bool
		err := rows.Scan(&host, &unmapped)
		if unmapped {
			cell.Unmapped = append(cell.Unmapped, registration.Quote(host))
		} else {
			cell.Mapped = append(cell.Mapped, registration.Quote(host))
		}
		return err
	})
	if err == nil {
		err = c.queryRow(ctx, &cell.Servers, "SELECT COUNT(*) FROM "+schema+".instances WHERE deleted = 0")
	}
	if err == nil {
		err = c.queryRow(ctx, &cell.OldestService, "SELECT COALESCE(MIN(version), 0) FROM "+schema+".services WHERE deleted = 0")
	}
	if err != nil {
		return Cell{}, c.withoutSchema(err, name)
	}
	return cell, nil
}

// Mapping is an entry of an API database: a cell to which servers can be scheduled, or
// cannot.
type Mapping struct{ Disabled bool }

// Mapping reads the entry of a cell in the API database called name. It returns nil if the
// cell has no entry.
func (c *Client) Mapping(ctx context.Context, name, uuid string) (*Mapping, error) {
	if err := registration.CheckName("database", name, longestDatabase); err != nil {
		return nil, err
	}
	var mapping Mapping
	err := c.queryRow(ctx, &mapping.Disabled, "SELECT disabled FROM "+quoteName(name)+".cell_mappings WHERE uuid = ?", uuid)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // documented
	}
	return &mapping, c.withoutSchema(err, name)
}

// Entry is the entry of a cell in an API database.
type Entry struct {
	UUID string
	// Location is the database of the cell, host:port/name; "" if the URL of the entry has
	// another form, for example that of a template.
	Location string
	// Servers is the number of servers that are not being deleted.
	Servers int
}

// EntryOf reads the entry of the cell called cell in the API database called name. It returns
// nil if the database has no such entry, or no tables yet (nova/db/api/models.py).
func (c *Client) EntryOf(ctx context.Context, name, cell string) (*Entry, error) {
	if err := registration.CheckName("database", name, longestDatabase); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, registration.AnswerTimeout)
	defer cancel()
	var entry Entry
	var connection string // has a password
	schema := quoteName(name)
	err := c.db.QueryRowContext(ctx, "SELECT uuid, COALESCE(database_connection, ''), (SELECT COUNT(*) FROM "+schema+".instance_mappings WHERE cell_id = cell.id AND NOT COALESCE(queued_for_delete, FALSE))"+
		" FROM "+schema+".cell_mappings AS cell WHERE name = ? ORDER BY id LIMIT 1", cell).Scan(&entry.UUID, &connection, &entry.Servers)
	refused, isRefused := errors.AsType[*mysql.MySQLError](err)
	if errors.Is(err, sql.ErrNoRows) || isRefused && (refused.Number == errTableMissing || refused.Number == errDatabaseMissing) {
		return nil, nil //nolint:nilnil // documented
	}
	entry.Location = locationIn(connection)
	return &entry, c.server.failure(err)
}

// locationIn returns the location in a URL of SQLAlchemy.
func locationIn(connection string) string {
	parsed, err := url.Parse(connection)
	if err != nil || parsed.Port() == "" || parsed.User == nil || strings.Contains(parsed.Path, "@") {
		return "" // without an account, the "host" is a part of a password with an unescaped slash
	}
	return registration.Quote(parsed.Host + parsed.Path)
}

// withoutSchema explains the error of a query if the database has no such table.
func (c *Client) withoutSchema(err error, name string) error {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if ok && (refused.Number == errTableMissing || refused.Number == errDatabaseMissing) {
		return fmt.Errorf("%s: database %q has no tables of Nova: its schema is not synchronised yet", c.server.Address, name)
	}
	return err
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
