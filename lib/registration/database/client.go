// Package database registers databases and accounts at a MariaDB server, and reads tables.
//
// The ownership mark of a database is its comment, which CREATE DATABASE sets (MariaDB 10.5
// or newer). An account has no mark: its name has a hash of its owner's UID, and so no
// other owner has an account of this name.
package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/remote"
)

// Server is a MariaDB server and the account to log in with.
type Server struct {
	Address  string // host:port
	User     string
	Password config.Password
	TLS      bool   // encrypts the connection and verifies the server's certificate
	CA       []byte // PEM; default: the system's authorities

	sqlMode string // default: sessionMode; a test sets it
	refusal *refusal
}

// sessionMode is set on each connection, so that the quoting of text does not depend on
// the server's configuration (ANSI_QUOTES, NO_BACKSLASH_ESCAPES).
const sessionMode = "STRICT_ALL_TABLES"

// Client is a connection to a Server. Its methods return the error types of package
// remote. No error has a password.
type Client struct {
	server  Server
	db      *sql.DB
	version string // such as "10.11.19-MariaDB-log"
}

// Connect logs in. The caller must close the Client.
func Connect(ctx context.Context, server Server) (*Client, error) {
	db, err := server.open()
	if err != nil {
		return nil, err
	}
	client := &Client{server: server, db: db}
	if err := client.queryRow(ctx, &client.version, "SELECT VERSION()"); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Address returns the host and port of the server.
func (c *Client) Address() string { return c.server.Address }

// Close closes the connection.
func (c *Client) Close() { _ = c.db.Close() }

var mariaDBVersion = regexp.MustCompile(`(\d+)\.(\d+)\.\d+-MariaDB`)

// checkVersion returns an error if the server has no comments on databases.
func (c *Client) checkVersion() error {
	found := mariaDBVersion.FindStringSubmatch(c.version)
	if found != nil {
		major, _ := strconv.Atoi(found[1])
		minor, _ := strconv.Atoi(found[2])
		if major > 10 || major == 10 && minor >= 5 {
			return nil
		}
	}
	return fmt.Errorf("%s has version %q: MariaDB 10.5 or newer is required, for comments on databases", c.server.Address, remote.Quote(c.version))
}

func (s *Server) open() (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", s.Address
	config.User, config.Passwd = s.User, string(s.Password)
	s.refusal = &refusal{}
	var err error
	if config.DialFunc, err = s.dial(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Address, err)
	}
	if s.TLS {
		config.Net = "unix" // where the driver, too, sends secrets without TLS of its own
	}
	config.Logger = &mysql.NopLogger{}
	// CREATE USER accepts no parameters: the driver replaces them by literals, quoted for
	// the session's mode.
	config.InterpolateParams = true
	mode := s.sqlMode
	if mode == "" {
		mode = sessionMode
	}
	config.Params = map[string]string{"sql_mode": "'" + mode + "'"}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Address, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// dial returns the driver's function that connects to the server.
func (s Server) dial() (func(ctx context.Context, network, address string) (net.Conn, error), error) {
	var secured *tls.Config
	if s.TLS {
		var err error
		if secured, err = remote.TLSConfig(s.CA); err != nil {
			return nil, err
		}
		if secured.ServerName, _, err = net.SplitHostPort(s.Address); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		conn, err := remote.Dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return &packets{Conn: conn, refusal: s.refusal, tls: secured}, nil
	}, nil
}

// QueryRow reads one row into results, one for each column. It returns sql.ErrNoRows if no row
// exists. Secrets MUST be read into strings, and not be arguments: errors quote other values.
func (c *Client) QueryRow(ctx context.Context, results []any, query string, arguments ...any) error {
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTimeout)
	defer cancel()
	return c.server.failure(c.db.QueryRowContext(ctx, query, arguments...).Scan(results...))
}

// QueryRows calls scan for each row of the result.
func (c *Client) QueryRows(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	return c.server.queryRows(ctx, c.db, query, scan)
}

// queryRow reads one row of one column.
func (c *Client) queryRow(ctx context.Context, result any, query string, arguments ...any) error {
	return c.QueryRow(ctx, []any{result}, query, arguments...)
}

func (c *Client) exec(ctx context.Context, statement string, arguments ...any) error {
	return c.server.failure(c.send(ctx, statement, arguments...))
}

// execSecret is exec for a statement with a password. The server quotes the statement in
// some messages, and so the error has only the number of the message. doing completes
// "could not …".
func (c *Client) execSecret(ctx context.Context, doing, statement string, arguments ...any) error {
	err := c.send(ctx, statement, arguments...)
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return c.server.failure(err)
	}
	if refused.Number == errPasswordPolicy {
		return fmt.Errorf("%s: could not %s: the server's password policy refuses the password", c.server.Address, doing)
	}
	return c.server.failure(&mysql.MySQLError{Number: refused.Number, SQLState: refused.SQLState, Message: "could not " + doing})
}

// send runs a statement and returns the error of the driver.
func (c *Client) send(ctx context.Context, statement string, arguments ...any) error {
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTimeout)
	defer cancel()
	_, err := c.db.ExecContext(ctx, statement, arguments...)
	return err
}

// queryRows calls scan for each row of the result.
func (s Server) queryRows(ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTimeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return s.failure(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err has the failure
	for rows.Next() {
		if err := scan(rows); err != nil {
			return s.failure(err)
		}
	}
	return s.failure(rows.Err())
}

// Numbers of the server's errors: https://mariadb.com/kb/en/mariadb-error-codes/
const (
	errTooManyConnections   = 1040
	errDatabaseDenied       = 1044
	errLoginDenied          = 1045
	errNotReady             = 1047 // a Galera node outside the primary component
	errShutdown             = 1053
	errDatabaseExists       = 1007
	errHostBlocked          = 1129
	errHostDenied           = 1130
	errTableDenied          = 1142
	errTooManyUserConnects  = 1203
	errPrivilegeMissing     = 1227
	errReadOnly             = 1290
	errTableMissing         = 1146
	errDatabaseMissing      = 1049
	errPasswordPolicy       = 1819
	errLoginWithoutPassword = 1698
	errAccountLocked        = 4151
)

// failure converts an error of the driver into an error type of package remote, if
// one fits.
func (s Server) failure(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, mysql.ErrInvalidConn) {
		err = driver.ErrBadConn
	}
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return &remote.Unreachable{Address: s.Address, Err: s.refusal.of(err)}
	}
	switch refused.Number {
	case errLoginDenied, errLoginWithoutPassword:
		return &remote.Denied{Address: s.Address, Account: s.User, Reason: "wrong user or password"}
	case errDatabaseDenied, errHostDenied, errTableDenied, errPrivilegeMissing, errAccountLocked:
		return &remote.Denied{Address: s.Address, Account: s.User, Reason: refused.Message}
	case errTooManyConnections, errNotReady, errShutdown, errHostBlocked, errTooManyUserConnects, errReadOnly:
		return &remote.Unreachable{Address: s.Address, Err: errors.New(refused.Message)}
	}
	short := *refused
	short.Message = remote.Quote(refused.Message)
	return fmt.Errorf("%s: %w", s.Address, &short)
}

// Lacks returns whether a query failed because its database, or a table, does not exist.
func Lacks(err error) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (refused.Number == errTableMissing || refused.Number == errDatabaseMissing)
}

// Quote returns the name of a database as a quoted identifier.
func Quote(name string) (string, error) {
	return quoteName(name), remote.CheckName("database", name, longestDatabase)
}

// quoteName returns a name as a quoted identifier.
func quoteName(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
