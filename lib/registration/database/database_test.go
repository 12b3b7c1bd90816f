package database

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

const password = config.Password("c4n4ry'\"\\$%@:#?& é")

func TestServerThatCannotBeReachedIsReportedInTime(t *testing.T) {
	connect := func(address string) error {
		client, err := Connect(context.Background(), Server{Address: address, User: "root", Password: password, TLS: true})
		if err == nil {
			client.Close()
		}
		return err
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		registrationtest.MustTryOnce(t, "no answer: timed out", password, connect)
	})
	for cause, test := range map[string]struct {
		address string
		answers bool
	}{
		"connection refused":       {registrationtest.RefusedAddress(t), false},
		"no connection: timed out": {registrationtest.FullAddress(t), false},
		"does not support TLS":     {handshakeAddress(t, nil), true},
		"certificate refused":      {handshakeAddress(t, certificate(t)), true},
		"host name":                {"nobody.invalid:3306", false},
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			attempt := func() error { return connect(test.address) }
			if test.answers {
				registrationtest.MustBeUnreachable(t, registrationtest.Answered(attempt), test.address, cause, password)
				return
			}
			registrationtest.MustBeUnreachable(t, attempt(), test.address, cause, password)
		})
	}
}

func TestCancelledCallIsNotUnreachable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Connect(ctx, Server{Address: registrationtest.SilentAddress(t), User: "root", Password: password})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, ok := errors.AsType[*remote.Unreachable](err); ok {
		t.Errorf("got Unreachable: %v", err)
	}
}

// handshakeAddress returns the address of a server that sends MariaDB's first packet, does
// a TLS handshake if it has a certificate, and then waits.
func handshakeAddress(t *testing.T, certificate *tls.Certificate) string {
	t.Helper()
	listener := registrationtest.Listen(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go greet(t.Context(), connection, certificate)
		}
	}()
	return listener.Addr().String()
}

func greet(ctx context.Context, connection net.Conn, certificate *tls.Certificate) {
	defer connection.Close()
	_, _ = connection.Write(greeting(certificate != nil))
	if certificate != nil {
		const requestForTLS = 4 + 32
		_, _ = io.CopyN(io.Discard, connection, requestForTLS)
		_ = tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{*certificate}}).HandshakeContext(ctx)
	}
	_, _ = io.Copy(io.Discard, connection)
}

// greeting is MariaDB's first packet:
// https://mariadb.com/kb/en/connection/#initial-handshake-packet
func greeting(hasTLS bool) []byte {
	lower := byte(0x82) // with the second byte: secure connection, protocol 4.1
	if hasTLS {
		lower |= 0x08
	}
	payload := []byte("\x0a10.11.0-MariaDB\x00" + "\x01\x00\x00\x00" + "12345678" + "\x00")
	payload = append(payload, 0x00, lower)
	payload = append(payload, "\x2d\x02\x00"+"\x08\x00"+"\x15"+strings.Repeat("\x00", 10)+"123456789012\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(payload)), 0, 0, 0}, payload...)
}

func certificate(t *testing.T) *tls.Certificate {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	return &server.TLS.Certificates[0]
}

func TestUnsafeNameIsRefusedWithoutAStatement(t *testing.T) {
	client := &Client{version: "11.4.2-MariaDB"} // a statement would panic
	ctx, mark := t.Context(), remote.NewMark("c", "ns", "demo")
	for _, name := range []string{"", "a`; DROP DATABASE mysql; --", "A", "a%", strings.Repeat("x", 81)} {
		_, databaseAbsent := client.DatabaseAbsent(ctx, name, mark)
		_, accountAbsent := client.AccountAbsent(ctx, name)
		_, quote := Quote(name)
		for what, err := range map[string]error{
			"EnsureDatabase":   client.EnsureDatabase(ctx, name, mark),
			"DropDatabase":     client.DropDatabase(ctx, name, mark),
			"DatabaseAbsent":   databaseAbsent,
			"EnsureAccount":    client.EnsureAccount(ctx, Account{User: name, Database: "demo"}),
			"account's schema": client.EnsureAccount(ctx, Account{User: "demo", Database: name}),
			"DropAccount":      client.DropAccount(ctx, name),
			"AccountAbsent":    accountAbsent,
			"Quote":            quote,
		} {
			if err == nil {
				t.Errorf("%s accepts the name %q", what, name)
			}
		}
	}
}

func TestQuotedNameReadsBackAsItself(t *testing.T) {
	for _, name := range []string{"demo_api", "a`b", "``", "a\\`", "'"} {
		quoted := quoteName(name)
		inner := quoted[1 : len(quoted)-1]
		if strings.Contains(strings.ReplaceAll(inner, "``", ""), "`") || strings.ReplaceAll(inner, "``", "`") != name {
			t.Errorf("%q becomes %s", name, quoted)
		}
	}
}

func TestGrantIsNotAWildcard(t *testing.T) {
	got := Account{User: "demo_api_3f9a2c", Database: "demo_api"}.grant()
	want := "GRANT ALL PRIVILEGES ON `demo\\_api`.* TO `demo_api_3f9a2c`@`%`"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServerWithoutCommentsOnDatabasesIsRefused(t *testing.T) {
	for version, supported := range map[string]bool{
		"10.11.19-MariaDB-0+deb12u1-log": true, "10.5.0-MariaDB": true, "11.4.2-MariaDB": true, "5.5.5-10.6.1-MariaDB": true,
		"10.4.34-MariaDB": false, "8.0.39": false, "": false,
	} {
		err := (&Client{version: version}).checkVersion()
		if (err == nil) != supported {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestFailuresOfTheServerHaveAType(t *testing.T) {
	server := Server{Address: "db:3306", User: "root", Password: password}
	for number, want := range map[uint16]any{
		errAccountLocked: &remote.Denied{},
		errLoginDenied:   &remote.Denied{}, errPrivilegeMissing: &remote.Denied{}, errHostDenied: &remote.Denied{},
		errTooManyConnections: &remote.Unreachable{}, errNotReady: &remote.Unreachable{}, errReadOnly: &remote.Unreachable{},
	} {
		err := server.failure(&mysql.MySQLError{Number: number, Message: "text"})
		_, denied := errors.AsType[*remote.Denied](err)
		_, unreachable := errors.AsType[*remote.Unreachable](err)
		if _, wantDenied := want.(*remote.Denied); denied != wantDenied || unreachable == wantDenied {
			t.Errorf("error %d becomes %T", number, err)
		}
	}
}
