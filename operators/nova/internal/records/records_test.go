package records

import (
	"net"
	"reflect"
	"strings"
	"testing"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/database"
	"asterism.dev/lib/registration/registrationtest"
)

// Each test has tables with the columns of Nova's that are read (nova/db/main/models.py,
// nova/db/api/models.py).
func TestRecords(t *testing.T) {
	server := registrationtest.StartMariaDB(t)
	client, err := database.Connect(t.Context(), database.Server{
		Address: net.JoinHostPort(server.Host, server.Port), User: server.User, Password: config.Password(server.Password),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	t.Run("names", func(t *testing.T) { refusesUnsafeNames(t, client) })
	t.Run("cell", func(t *testing.T) { countsHostsAndServers(t, server, client) })
	t.Run("mapping", func(t *testing.T) { readsMappings(t, server, client) })
	t.Run("entry", func(t *testing.T) { readsEntries(t, server, client) })
	t.Run("owner", func(t *testing.T) { findsOwners(t, server, client) })
}

func refusesUnsafeNames(t *testing.T, client *database.Client) {
	t.Helper()
	for _, name := range []string{"", "a`; DROP DATABASE mysql; --", "A", "a%", strings.Repeat("x", 65)} {
		_, cell := readCell(t.Context(), client, name)
		_, servers := countServers(t.Context(), client, name)
		_, mapping := readMapping(t.Context(), client, name, "uuid")
		_, entry := readEntry(t.Context(), client, name, "", "cell1")
		_, instance := anInstance(t.Context(), client, name)
		_, owner := readOwner(t.Context(), client, name, "db:3306/nova", "instance")
		for what, err := range map[string]error{"cell": cell, "servers": servers, "mapping": mapping, "entry": entry, "instance": instance, "owner": owner} {
			if err == nil || !strings.Contains(err.Error(), "database name") {
				t.Errorf("%s accepts the name %q: %v", what, name, err)
			}
		}
	}
}

func countsHostsAndServers(t *testing.T, server registrationtest.MariaDB, client *database.Client) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE cell1")
	if _, err := readCell(t.Context(), client, "cell1"); err == nil || !strings.HasPrefix(err.Error(), client.Address()+": database ") || !strings.Contains(err.Error(), "synchronized") {
		t.Errorf("without a schema: %v", err)
	}
	server.Exec(t,
		"CREATE TABLE cell1.compute_nodes (host VARCHAR(255), mapped INT, deleted INT)",
		"CREATE TABLE cell1.instances (host VARCHAR(255), deleted INT)",
		"CREATE TABLE cell1.services (version INT, deleted INT, `binary` VARCHAR(255))")
	cell, err := readCell(t.Context(), client, "cell1")
	if err != nil || !reflect.DeepEqual(cell, Cell{}) {
		t.Error(cell, err)
	}
	server.Exec(t,
		`INSERT INTO cell1.compute_nodes VALUES ('compute-2', 0, 0), ('compute-1', 0, 0), ('compute-1', 1, 0),
			('gone', 0, 7), ('mapped', 1, 0), ('old', NULL, 0)`,
		"INSERT INTO cell1.instances VALUES ('mapped', 0), (NULL, 0), ('mapped', 9)",
		"INSERT INTO cell1.services VALUES (66, 0, 'nova-compute'), (66, 0, 'nova-compute'), (66, 0, 'nova-conductor'), (64, 0, 'nova-conductor'), (65, 0, 'nova-compute'), (40, 3, 'nova-compute')")
	cell, err = readCell(t.Context(), client, "cell1")
	want := Cell{Hosts: []string{"compute-1", "compute-2", "mapped", "old"}, Servers: 2, OldestService: 64, Computes: []Computes{{65, 1}, {66, 2}}}
	if err != nil || !reflect.DeepEqual(cell, want) {
		t.Errorf("got %+v, %v, want %+v", cell, err, want)
	}
	server.Exec(t, "INSERT INTO cell1.instances VALUES ('old', 0), ('old', 0), ('gone', 1)")
	servers, err := countServers(t.Context(), client, "cell1")
	if want := map[string]int{"mapped": 1, "old": 2}; err != nil || !reflect.DeepEqual(servers, want) {
		t.Errorf("got %v, %v, want %v", servers, err, want)
	}
}

func readsMappings(t *testing.T, server registrationtest.MariaDB, client *database.Client) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE api")
	if _, err := readMapping(t.Context(), client, "api", "u1"); err == nil || !strings.HasPrefix(err.Error(), client.Address()+": database ") || !strings.Contains(err.Error(), "synchronized") {
		t.Errorf("without a schema: %v", err)
	}
	server.Exec(t,
		"CREATE TABLE api.cell_mappings (id INT, uuid VARCHAR(36), disabled BOOLEAN)",
		"CREATE TABLE api.host_mappings (cell_id INT, host VARCHAR(255))",
		"INSERT INTO api.cell_mappings VALUES (1, 'u1', FALSE), (2, 'u10', TRUE)",
		"INSERT INTO api.host_mappings VALUES (2, 'compute-0'), (3, 'compute-1')")
	for uuid, want := range map[string]*Mapping{"u1": {}, "u10": {Disabled: true, Hosts: []string{"compute-0"}}, "u": nil} {
		if mapping, err := readMapping(t.Context(), client, "api", uuid); err != nil || !reflect.DeepEqual(mapping, want) {
			t.Errorf("%s: got %+v, %v, want %+v", uuid, mapping, err, want)
		}
	}
}

func readsEntries(t *testing.T, server registrationtest.MariaDB, client *database.Client) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE entries")
	if entry, err := readEntry(t.Context(), client, "entries", "", "cell1"); entry != nil || err != nil {
		t.Errorf("without a schema: %+v, %v", entry, err)
	}
	server.Exec(t,
		"CREATE TABLE entries.cell_mappings (id INT, uuid VARCHAR(36), name VARCHAR(255), database_connection TEXT)",
		"CREATE TABLE entries.instance_mappings (cell_id INT, queued_for_delete BOOLEAN)",
		"INSERT INTO entries.cell_mappings VALUES (1, 'u0', 'cell0', '{scheme}://{username}:{password}@{hostname}/nova_cell0'), "+
			"(2, 'u1', 'cell1', 'mysql+pymysql://nova:p%40ss%2F@[2001:db8::1]:3306/nova_cell1?charset=utf8'), (3, 'u10', 'cell10', NULL)",
		"INSERT INTO entries.instance_mappings VALUES (2, FALSE), (2, NULL), (2, TRUE), (3, FALSE)")
	for cell, want := range map[string]*Entry{
		"cell0":  {UUID: "u0"},
		"cell1":  {UUID: "u1", Location: "[2001:db8::1]:3306/nova_cell1", Servers: 2},
		"cell10": {UUID: "u10", Servers: 1},
		"cell":   nil,
	} {
		if entry, err := readEntry(t.Context(), client, "entries", "", cell); err != nil || !reflect.DeepEqual(entry, want) {
			t.Errorf("%s: got %+v, %v, want %+v", cell, entry, err, want)
		}
	}
	if entry, err := readEntry(t.Context(), client, "entries", "u10", "cell1"); err != nil || entry == nil || entry.UUID != "u10" {
		t.Errorf("the UUID comes before the name: got %+v, %v", entry, err)
	}
}

func findsOwners(t *testing.T, server registrationtest.MariaDB, client *database.Client) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE owned", "CREATE DATABASE owners")
	if instance, err := anInstance(t.Context(), client, "owned"); instance != "" || err != nil {
		t.Errorf("without a schema: %q, %v", instance, err)
	}
	if owner, err := readOwner(t.Context(), client, "owners", "db:3306/nova", "i1"); owner != "" || err != nil {
		t.Errorf("without a schema: %q, %v", owner, err)
	}
	server.Exec(t,
		"CREATE TABLE owned.instances (uuid VARCHAR(36), deleted INT)",
		"INSERT INTO owned.instances VALUES ('i1', 0), ('i2', 5)",
		"CREATE TABLE owners.cell_mappings (id INT, uuid VARCHAR(36), database_connection TEXT)",
		"CREATE TABLE owners.instance_mappings (cell_id INT, instance_uuid VARCHAR(36))",
		"INSERT INTO owners.cell_mappings VALUES (1, 'u1', 'mysql+pymysql://nova:secret@db:3306/nova?charset=utf8'), (2, 'u2', NULL)",
		"INSERT INTO owners.instance_mappings VALUES (2, 'i1'), (1, 'i2')")
	if instance, err := anInstance(t.Context(), client, "owned"); instance != "i1" || err != nil {
		t.Errorf("got %q, %v", instance, err)
	}
	for _, c := range []struct{ location, instance, want string }{
		{"db:3306/nova", "", "is the database of the cell with UUID u1"},
		{"10.0.0.1:3306/nova", "i1", "has instances of the cell with UUID u2"},
		{"10.0.0.1:3306/nova", "i3", ""},
		{"10.0.0.1:3306/nova", "", ""},
	} {
		if owner, err := readOwner(t.Context(), client, "owners", c.location, c.instance); owner != c.want || err != nil {
			t.Errorf("%s with %s: got %q, %v, want %q", c.location, c.instance, owner, err, c.want)
		}
	}
}
