//go:build e2e

// Tests against a real MariaDB, whose address and account these variables have:
//
//	ASTERISM_MARIADB_ADDR      host:port
//	ASTERISM_MARIADB_USER      an account with all privileges and GRANT OPTION
//	ASTERISM_MARIADB_PASSWORD  its password
//	ASTERISM_MARIADB_CA_FILE   optional: use TLS, and trust this CA (PEM)
//
// The tests create databases and accounts with random names, and drop them.

package database

import (
	"context"
	"errors"
	"strings"
	"testing"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

var (
	mark      = remote.NewMark("6f2c0f0e-1111-4222-8333-444455556666", "openstack", "demo")
	otherMark = remote.NewMark("6f2c0f0e-1111-4222-8333-444455556666", "openstack", "other")
)

func realServer(t *testing.T) Server {
	t.Helper()
	ca := registrationtest.CAFile(t, "ASTERISM_MARIADB_CA_FILE")
	return Server{
		Address:  registrationtest.Env(t, "ASTERISM_MARIADB_ADDR"),
		User:     registrationtest.Env(t, "ASTERISM_MARIADB_USER"),
		Password: config.Password(registrationtest.Env(t, "ASTERISM_MARIADB_PASSWORD")),
		TLS:      ca != nil, CA: ca,
	}
}

func connect(t *testing.T, server Server) *Client {
	t.Helper()
	client, err := Connect(registrationtest.Context(t), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// as returns a client that is logged in as the account.
func as(t *testing.T, account Account) *Client {
	t.Helper()
	server := realServer(t)
	server.User, server.Password = account.User, account.Password
	return connect(t, server)
}

// dropAfter drops the database and the account after the test.
func dropAfter(t *testing.T, client *Client, database, user string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(client.exec(ctx, "DROP DATABASE IF EXISTS "+quoteName(database)), client.DropAccount(ctx, user)); err != nil {
			t.Error(err)
		}
	})
}

func run(t *testing.T, client *Client, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := client.exec(registrationtest.Context(t), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writes counts the statements of the client's session that changed something.
func writes(t *testing.T, client *Client) (count int) {
	t.Helper()
	err := client.queryRow(registrationtest.Context(t), &count, `
		SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME IN
		('COM_CREATE_DB', 'COM_DROP_DB', 'COM_ALTER_DB', 'COM_CREATE_USER', 'COM_ALTER_USER', 'COM_DROP_USER', 'COM_GRANT', 'COM_REVOKE')`)
	must(t, err)
	return count
}

func TestRequiredDatabaseIsNotCreated(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	name := registrationtest.Name(t, "copy")
	dropAfter(t, client, name, name)
	if err := client.RequireDatabase(ctx, name, mark); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Fatalf("got %v", err)
	}
	run(t, client, "CREATE DATABASE "+quoteName(name))
	if _, conflict := errors.AsType[*remote.Conflict](client.RequireDatabase(ctx, name, mark)); !conflict {
		t.Fatal("a database without a mark is not a copy")
	}
	run(t, client, "ALTER DATABASE "+quoteName(name)+" COMMENT '"+string(mark)+"'")
	must(t, client.RequireDatabase(ctx, name, mark))
}

func TestDatabaseIsCreatedOnceAndCarriesItsMark(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	name := registrationtest.Name(t, "api")
	dropAfter(t, client, name, name)
	absent, err := client.DatabaseAbsent(ctx, name, mark)
	if !absent || err != nil {
		t.Fatal(absent, err)
	}
	before := writes(t, client)
	for range 3 {
		must(t, client.EnsureDatabase(ctx, name, mark))
	}
	if got := writes(t, client) - before; got != 1 {
		t.Errorf("%d writes", got)
	}
	var comment, charset string
	must(t, client.queryRow(ctx, &comment, "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", name))
	must(t, client.queryRow(ctx, &charset, "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", name))
	if comment != string(mark) || charset != "utf8mb3" {
		t.Errorf("mark %q, character set %q", comment, charset)
	}

	absent, err = client.DatabaseAbsent(ctx, name, mark)
	if absent || err != nil {
		t.Error(absent, err)
	}
	must(t, client.DropDatabase(ctx, name, mark))
	must(t, client.DropDatabase(ctx, name, mark))
	absent, err = client.DatabaseAbsent(ctx, name, mark)
	if !absent || err != nil {
		t.Error(absent, err)
	}
}

func TestForeignDatabaseIsAConflictAndStays(t *testing.T) {
	for found, comment := range map[string]string{string(otherMark): string(otherMark), "": "", "DBA's own": "DBA''s own"} {
		ctx, client := registrationtest.Context(t), connect(t, realServer(t))
		name := registrationtest.Name(t, "api")
		dropAfter(t, client, name, name)
		run(t, client, "CREATE DATABASE "+quoteName(name)+" COMMENT '"+comment+"'", "CREATE TABLE "+quoteName(name)+".other (id INT)")

		before := writes(t, client)
		err := client.EnsureDatabase(ctx, name, mark)
		conflict, ok := errors.AsType[*remote.Conflict](err)
		if !ok || conflict.Name != name || conflict.Found != found || conflict.Want != mark {
			t.Errorf("got %v", err)
		}
		must(t, client.DropDatabase(ctx, name, mark))
		absent, err := client.DatabaseAbsent(ctx, name, mark)
		if !absent || err != nil {
			t.Error("no database with the mark exists, but:", absent, err)
		}
		if got := writes(t, client) - before; got != 0 {
			t.Errorf("%d writes", got)
		}
		run(t, client, "SELECT * FROM "+quoteName(name)+".other")
	}
}

func TestAnyPasswordWorksInAnyMode(t *testing.T) {
	for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES"} {
		t.Run(mode, func(t *testing.T) {
			server := realServer(t)
			server.sqlMode = mode
			ctx, client := registrationtest.Context(t), connect(t, server)
			name := registrationtest.Name(t, "api")
			dropAfter(t, client, name, name)
			must(t, client.EnsureDatabase(ctx, name, mark))
			for _, password := range registrationtest.Passwords(t, 50) {
				account := Account{User: name, Password: password, Database: name}
				if err := client.EnsureAccount(ctx, account); err != nil {
					t.Fatalf("%q: %v", string(password), err)
				}
				before := writes(t, client)
				if err := client.EnsureAccount(ctx, account); err != nil {
					t.Fatalf("%q: %v", string(password), err)
				}
				if got := writes(t, client) - before; got != 0 {
					t.Fatalf("%q: %d writes although nothing was wrong", string(password), got)
				}
				as(t, account).Close()
			}
		})
	}
}

func TestSessionHasItsOwnSQLMode(t *testing.T) {
	var mode string
	must(t, connect(t, realServer(t)).queryRow(registrationtest.Context(t), &mode, "SELECT @@SESSION.sql_mode"))
	if mode != sessionMode {
		t.Errorf("the session has %q", mode)
	}
}

func TestAccountReachesOnlyItsOwnDatabase(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	name := registrationtest.Name(t, "api")
	lookalike := strings.Replace(name, "_", "x", 1)
	dropAfter(t, client, name, name)
	dropAfter(t, client, lookalike, name)
	must(t, client.EnsureDatabase(ctx, name, mark))
	must(t, client.EnsureDatabase(ctx, lookalike, mark))
	account := Account{User: name, Password: "pw", Database: name}
	must(t, client.EnsureAccount(ctx, account))
	own := as(t, account)
	run(t, own, "CREATE TABLE "+quoteName(name)+".t (id INT)", "DROP TABLE "+quoteName(name)+".t")
	for _, statement := range []string{
		"CREATE TABLE " + quoteName(lookalike) + ".t (id INT)", "CREATE DATABASE " + quoteName(name+"2"), "SELECT * FROM mysql.user",
	} {
		if _, ok := errors.AsType[*remote.Denied](own.exec(ctx, statement)); !ok {
			t.Errorf("the account can %s", statement)
		}
	}
	if _, ok := errors.AsType[*remote.Denied](own.EnsureDatabase(ctx, name+"2", mark)); !ok {
		t.Error("EnsureDatabase without the privilege is not Denied")
	}
}

func TestDamagedAccountIsRepaired(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	name := registrationtest.Name(t, "api")
	dropAfter(t, client, name, name)
	must(t, client.EnsureDatabase(ctx, name, mark))
	account := Account{User: name, Password: "pw", Database: name}
	must(t, client.EnsureAccount(ctx, account))
	for _, damage := range []string{
		"ALTER USER " + accountName(name) + " IDENTIFIED BY 'other'",
		"REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + accountName(name),
		"REVOKE INSERT ON " + strings.ReplaceAll(quoteName(name), "_", `\_`) + ".* FROM " + accountName(name),
		"DROP USER " + accountName(name),
	} {
		run(t, client, damage)
		must(t, client.EnsureAccount(ctx, account))
		run(t, as(t, account), "CREATE OR REPLACE TABLE "+quoteName(name)+".t (id INT)", "INSERT INTO "+quoteName(name)+".t VALUES (1)")
	}
	must(t, client.DropAccount(ctx, name))
	must(t, client.DropAccount(ctx, name))
	absent, err := client.AccountAbsent(ctx, name)
	if !absent || err != nil {
		t.Error(absent, err)
	}
}

func TestAccountRequiresTLSIfConfigured(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	name := registrationtest.Name(t, "api")
	dropAfter(t, client, name, name)
	must(t, client.EnsureDatabase(ctx, name, mark))
	account := Account{User: name, Password: "pw", Database: name, RequireTLS: true}
	err := client.EnsureAccount(ctx, account)
	if !client.server.TLS {
		if err == nil {
			t.Error("an account that requires TLS was accepted without TLS")
		}
		return
	}
	must(t, err)
	plain := client.server
	plain.TLS, plain.User, plain.Password = false, account.User, account.Password
	if _, err := Connect(ctx, plain); err == nil {
		t.Error("the account can log in without TLS")
	}
	account.RequireTLS = false
	must(t, client.EnsureAccount(ctx, account))
	connect(t, plain)
}

func TestWrongPasswordIsDeniedAndNotInTheError(t *testing.T) {
	server := realServer(t)
	server.Password = "c4n4ry'\"\\$%@:#?& é"
	_, err := Connect(registrationtest.Context(t), server)
	denied, ok := errors.AsType[*remote.Denied](err)
	if !ok || denied.Account != server.User || denied.Address != server.Address {
		t.Errorf("got %v", err)
	}
	registrationtest.MustNotTell(t, err, server.Password)
}

func TestErrorOfAStatementHasNoPassword(t *testing.T) {
	ctx, client := registrationtest.Context(t), connect(t, realServer(t))
	const canary = "c4n4ry"
	err := client.execSecret(ctx, "try", "CREATE USER u IDENTIFIED BY ? NONSENSE 'c4n4ry'", canary)
	if err == nil {
		t.Fatal("no error")
	}
	registrationtest.MustNotTell(t, err, canary)
}
