package database

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asterism.dev/lib/common/certificatetest"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/registration/registrationtest"
	"asterism.dev/lib/registration/remote"
)

const address = "127.0.0.1"

// overTLS starts a real MariaDB with a certificate.
func overTLS(t *testing.T, signer certificatetest.Authority, name string, notAfter time.Time) Server {
	t.Helper()
	certificate, key := signer.Sign(t, notAfter, name)
	folder := t.TempDir()
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := registrationtest.StartMariaDB(t, "--ssl-cert="+filepath.Join(folder, "tls.crt"), "--ssl-key="+filepath.Join(folder, "tls.key"))
	return Server{
		Address: net.JoinHostPort(address, server.Port), User: server.User, Password: config.Password(server.Password),
		TLS: true, CA: signer.PEM,
	}
}

// connectTo connects to a server that runs, which may be slow.
func connectTo(t *testing.T, server Server) (client *Client, err error) {
	t.Helper()
	err = registrationtest.Answered(func() (err error) {
		client, err = Connect(registrationtest.Context(t), server)
		return err
	})
	return client, err
}

// TestAccountsOverTLS registers an account over TLS, and checks that an account that
// requires TLS can log in only with TLS.
func TestAccountsOverTLS(t *testing.T) {
	t.Parallel()
	server := overTLS(t, certificatetest.NewAuthority(t), address, time.Now().Add(time.Hour))
	ctx := registrationtest.Context(t)
	client, err := connectTo(t, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	mark := remote.NewMark("6f2c0f0e-1111-4222-8333-444455556666", "openstack", "demo")
	account := Account{User: "nova", Password: "pw", Database: "nova", RequireTLS: true}
	if err := registrationtest.Answered(func() error { return client.EnsureDatabase(ctx, account.Database, mark) }); err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{true, false} {
		account.RequireTLS = required
		if err := registrationtest.Answered(func() error { return client.EnsureAccount(ctx, account) }); err != nil {
			t.Fatal(err)
		}
		own := server
		own.User, own.Password = account.User, account.Password
		for _, own.TLS = range []bool{true, false} {
			connection, err := connectTo(t, own)
			if err == nil {
				connection.Close()
			}
			if allowed := own.TLS || !required; allowed != (err == nil) {
				t.Errorf("TLS required: %t, used: %t: %v", required, own.TLS, err)
			}
		}
	}
}

// TestWrongCertificatesAreRefused checks that the error has the address of the server and
// the reason.
func TestWrongCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	signer, valid := certificatetest.NewAuthority(t), time.Now().Add(time.Hour)
	for reason, server := range map[string]Server{
		"signed by unknown authority":           trusting(overTLS(t, signer, address, valid), certificatetest.NewAuthority(t)),
		"certificate has expired":               overTLS(t, signer, address, time.Now().Add(-time.Minute)),
		"is valid for 192.0.2.1, not 127.0.0.1": overTLS(t, signer, "192.0.2.1", valid),
	} {
		connection, err := connectTo(t, server)
		if err == nil {
			connection.Close()
			t.Errorf("the certificate was accepted, want: %s", reason)
			continue
		}
		if message := err.Error(); !strings.Contains(message, server.Address) || !strings.Contains(message, reason) {
			t.Errorf("message %q lacks %q or %q", message, server.Address, reason)
		}
	}
}

func trusting(server Server, authority certificatetest.Authority) Server {
	server.CA = authority.PEM
	return server
}
