package registrationtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a real server for one test, on the loopback interface.
type MariaDB struct {
	Host     string
	Port     string
	User     string // has all privileges
	Password string
	DB       *sql.DB
}

// StartMariaDB starts an empty server with additional options. The server stops with the
// test. It does not need root.
func StartMariaDB(t testing.TB, options ...string) MariaDB {
	t.Helper()
	dir := shortTempDir(t)
	server := MariaDB{User: "admin", Password: rand.Text()}
	setUp := filepath.Join(dir, "set-up.sql")
	statements := fmt.Sprintf("CREATE USER admin@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO admin@'%%' WITH GRANT OPTION;\n", server.Password)
	if err := os.WriteFile(setUp, []byte(statements), 0o600); err != nil {
		t.Fatal(err)
	}
	common := []string{"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--skip-name-resolve"}
	if os.Getuid() == 0 {
		common = append(common, "--user=root")
	}
	program(t, "my_print_defaults") // mariadb-install-db needs it, its package does not install it
	install := exec.CommandContext(context.Background(), program(t, "mariadb-install-db"), append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	install.Env = append(os.Environ(), "TMPDIR="+dir) // at its start a server deletes the temporary tables of others
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, output)
	}
	var err error
	if server.Host, server.Port, err = net.SplitHostPort(RefusedAddress(t)); err != nil { // now, because others take free ports too
		t.Fatal(err)
	}
	server.run(t, append(append(common, options...), "--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid"), "--tmpdir="+dir,
		"--bind-address=127.0.0.1", "--port="+server.Port, "--init-file="+setUp,
		"--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"))
	server.connect(t)
	return server
}

// shortTempDir returns a directory whose path is short: the path of a socket has at most
// 107 characters.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// program returns the path of a program in PATH or in /usr/sbin, which Debian has only in
// root's PATH.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		t.Fatalf("%s is missing; on Debian or Ubuntu type: sudo apt-get install mariadb-client-core mariadb-server-core", name)
	}
	return path
}

func (m MariaDB) run(t testing.TB, arguments []string) {
	t.Helper()
	log := &bytes.Buffer{}
	command := exec.CommandContext(context.Background(), program(t, "mariadbd"), arguments...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("MariaDB's log:\n%s", log)
		}
	})
}

func (m *MariaDB) connect(t testing.TB) {
	t.Helper()
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", net.JoinHostPort(m.Host, m.Port)
	config.User, config.Passwd, config.Logger = m.User, m.Password, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	m.DB = sql.OpenDB(connector)
	t.Cleanup(func() { _ = m.DB.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := m.DB.PingContext(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("MariaDB does not answer: %v", err)
		case <-retry.C:
		}
	}
}

// Exec runs statements.
func (m MariaDB) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := m.DB.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Column returns the first column of all rows.
func (m MariaDB) Column(t testing.TB, query string) []string {
	t.Helper()
	rows, err := m.DB.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the failure
	var values []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return values
}
