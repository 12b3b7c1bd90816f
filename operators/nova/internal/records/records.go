// Package records reads what Nova has written to its databases: the hosts and servers of a cell,
// and the mappings of cells in the API database.
package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/nova"
	"asterism.dev/lib/registration"
	"asterism.dev/lib/registration/database"
	"asterism.dev/lib/registration/remote"
)

// Cell is the content of a cell's database.
type Cell struct {
	Hosts   []string // names of the hosts of compute_nodes that are not deleted, sorted
	Servers int      // also of servers that are on no host
	// OldestService is the smallest version of a service, a number that each release of
	// Nova increases (nova/objects/service.py); 0 without a service.
	OldestService int
	// Computes counts the compute services by their version.
	Computes []Computes
}

// Computes is a number of compute services with the same version.
type Computes struct{ Version, Count int }

// CellOf reads the content of the database of a cell. It does not read which compute_nodes are
// marked as mapped: the mark says nothing of a second node of a host, or of a row that was
// recreated.
func CellOf(ctx context.Context, account registration.Account, in engine.Inputs) (cell Cell, err error) {
	err = registration.WithDatabase(ctx, account, in, func(c *database.Client, name string) error {
		cell, err = readCell(ctx, c, name)
		return err
	})
	return cell, err
}

func readCell(ctx context.Context, c *database.Client, name string) (Cell, error) {
	schema, err := database.Quote(name)
	if err != nil {
		return Cell{}, err
	}
	var cell Cell
	cell.Hosts, err = hosts(ctx, c, "SELECT DISTINCT COALESCE(host, '') FROM "+schema+".compute_nodes WHERE deleted = 0 ORDER BY 1")
	if err == nil {
		err = c.QueryRow(ctx, []any{&cell.Servers}, "SELECT COUNT(*) FROM "+schema+".instances WHERE deleted = 0")
	}
	if err == nil {
		err = c.QueryRows(ctx, "SELECT COALESCE(version, 0), COUNT(CASE WHEN `binary` = 'nova-compute' THEN 1 END) FROM "+schema+
			".services WHERE deleted = 0 GROUP BY 1 ORDER BY 1", cell.addServices)
	}
	if err != nil {
		return Cell{}, withoutSchema(err, c, name)
	}
	return cell, nil
}

// addServices reads a number of services with the same version; the oldest ones come first.
func (c *Cell) addServices(rows *sql.Rows) error {
	var found Computes
	err := rows.Scan(&found.Version, &found.Count)
	if c.OldestService == 0 {
		c.OldestService = found.Version
	}
	if found.Count > 0 {
		c.Computes = append(c.Computes, found)
	}
	return err
}

// Servers counts the servers on each host of a cell.
func Servers(ctx context.Context, account registration.Account, in engine.Inputs) (servers map[string]int, err error) {
	err = registration.WithDatabase(ctx, account, in, func(c *database.Client, name string) error {
		servers, err = countServers(ctx, c, name)
		return err
	})
	return servers, err
}

func countServers(ctx context.Context, c *database.Client, name string) (map[string]int, error) {
	schema, err := database.Quote(name)
	if err != nil {
		return nil, err
	}
	servers := map[string]int{}
	err = c.QueryRows(ctx, "SELECT host, COUNT(*) FROM "+schema+".instances WHERE deleted = 0 AND host IS NOT NULL GROUP BY host", func(rows *sql.Rows) error {
		var host string
		var count int
		err := rows.Scan(&host, &count)
		servers[host] = count
		return err
	})
	return servers, withoutSchema(err, c, name)
}

// hosts returns the names of hosts that a query finds.
func hosts(ctx context.Context, c *database.Client, query string) (names []string, err error) {
	err = c.QueryRows(ctx, query, func(rows *sql.Rows) error {
		var host string
		err := rows.Scan(&host)
		names = append(names, remote.Quote(host))
		return err
	})
	return names, err
}

// Mapping is an entry of an API database: a cell to which servers can be scheduled, or
// cannot, and the hosts on which they can be placed.
type Mapping struct {
	Disabled bool
	Hosts    []string
}

// MappingOf reads the entry of the cell with the UUID in the API database of a connection
// Secret. It returns nil if the cell has no entry.
func MappingOf(ctx context.Context, secret map[string][]byte, uuid string) (mapping *Mapping, err error) {
	err = registration.WithDatabaseOf(ctx, secret, nova.APIDatabaseName, func(c *database.Client, name string) error {
		mapping, err = readMapping(ctx, c, name, uuid)
		return err
	})
	return mapping, err
}

func readMapping(ctx context.Context, c *database.Client, name, uuid string) (*Mapping, error) {
	schema, err := database.Quote(name)
	if err != nil {
		return nil, err
	}
	var mapping Mapping
	var id int
	err = c.QueryRow(ctx, []any{&id, &mapping.Disabled}, "SELECT id, disabled FROM "+schema+".cell_mappings WHERE uuid = ?", uuid)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // documented
	}
	if err == nil {
		mapping.Hosts, err = hosts(ctx, c, "SELECT host FROM "+schema+".host_mappings WHERE cell_id = "+strconv.Itoa(id))
	}
	return &mapping, withoutSchema(err, c, name)
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

// EntryOf reads the entry of the cell with the UUID, or otherwise with the name, in the API
// database of a connection Secret. It returns nil if the database has no such entry, or no tables
// yet (nova/db/api/models.py).
func EntryOf(ctx context.Context, secret map[string][]byte, uuid, cell string) (entry *Entry, err error) {
	err = registration.WithDatabaseOf(ctx, secret, nova.APIDatabaseName, func(c *database.Client, name string) error {
		entry, err = readEntry(ctx, c, name, uuid, cell)
		return err
	})
	return entry, err
}

func readEntry(ctx context.Context, c *database.Client, name, uuid, cell string) (*Entry, error) {
	schema, err := database.Quote(name)
	if err != nil {
		return nil, err
	}
	var entry Entry
	var connection string // has a password
	query := "SELECT uuid, COALESCE(database_connection, ''), (SELECT COUNT(*) FROM " + schema + ".instance_mappings WHERE cell_id = cell.id AND NOT COALESCE(queued_for_delete, FALSE))" +
		" FROM " + schema + ".cell_mappings AS cell WHERE uuid = ? OR name = ? ORDER BY uuid = ? DESC, id LIMIT 1"
	err = c.QueryRow(ctx, []any{&entry.UUID, &connection, &entry.Servers}, query, uuid, cell, uuid)
	if errors.Is(err, sql.ErrNoRows) || database.Lacks(err) {
		return nil, nil //nolint:nilnil // documented
	}
	entry.Location = locationIn(connection)
	return &entry, err
}

// OwnerOf tells of which cell in the API database a database is, "" for none: by the URL in the
// entry of the cell or, because the URL may have another name of the same server, by an instance.
func OwnerOf(ctx context.Context, account registration.Account, in engine.Inputs, api map[string][]byte) (owner string, err error) {
	location, err := registration.Location(account, in)
	if err != nil {
		return "", err
	}
	var instance string
	err = registration.WithDatabase(ctx, account, in, func(c *database.Client, name string) error {
		instance, err = anInstance(ctx, c, name)
		return err
	})
	if err != nil {
		return "", err
	}
	err = registration.WithDatabaseOf(ctx, api, nova.APIDatabaseName, func(c *database.Client, name string) error {
		owner, err = readOwner(ctx, c, name, location, instance)
		return err
	})
	return owner, err
}

// anInstance returns the UUID of an instance of a cell, "" for none.
func anInstance(ctx context.Context, c *database.Client, name string) (uuid string, err error) {
	schema, err := database.Quote(name)
	if err != nil {
		return "", err
	}
	err = c.QueryRow(ctx, []any{&uuid}, "SELECT COALESCE(MAX(uuid), '') FROM "+schema+".instances WHERE deleted = 0")
	if database.Lacks(err) {
		return "", nil // before its schema is synchronized
	}
	return uuid, err
}

func readOwner(ctx context.Context, c *database.Client, name, location, instance string) (owner string, err error) {
	schema, err := database.Quote(name)
	if err != nil {
		return "", err
	}
	err = c.QueryRows(ctx, "SELECT uuid, COALESCE(database_connection, '') FROM "+schema+".cell_mappings", func(rows *sql.Rows) error {
		var uuid, connection string
		err := rows.Scan(&uuid, &connection)
		if locationIn(connection) == location {
			owner = "is the database of the cell with UUID " + remote.Quote(uuid)
		}
		return err
	})
	if database.Lacks(err) {
		return "", nil
	}
	if err != nil || owner != "" || instance == "" {
		return owner, err
	}
	var uuid string
	err = c.QueryRow(ctx, []any{&uuid}, "SELECT cell.uuid FROM "+schema+".cell_mappings AS cell JOIN "+schema+".instance_mappings AS instance"+
		" ON instance.cell_id = cell.id WHERE instance.instance_uuid = ?", instance)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return "has instances of the cell with UUID " + remote.Quote(uuid), err
}

// locationIn returns the location in a URL of SQLAlchemy.
func locationIn(connection string) string {
	parsed, err := url.Parse(connection)
	if err != nil || parsed.Port() == "" || parsed.User == nil || strings.Contains(parsed.Path, "@") {
		return "" // without an account, the "host" is a part of a password with an unescaped slash
	}
	return remote.Quote(parsed.Host + parsed.Path)
}

// withoutSchema explains the error of a query if the database has no such table.
func withoutSchema(err error, c *database.Client, name string) error {
	if database.Lacks(err) {
		return fmt.Errorf("%s: database %q has no tables of Nova: its schema is not synchronized yet", c.Address(), name)
	}
	return err
}
