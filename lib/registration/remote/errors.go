package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"
)

// Unreachable is the error if no server gave a usable answer at Address. The request can
// be retried: the request itself is correct.
type Unreachable struct { //nolint:errname // reads remote.Unreachable
	Address string // host:port
	Err     error  // the cause
}

func (e *Unreachable) Error() string { return e.Address + ": " + Quote(cause(e.Err)) }

func (e *Unreachable) Unwrap() error { return e.Err }

// Denied is the error if the server at Address refused Account: the password is wrong, or
// the account lacks a right.
type Denied struct { //nolint:errname // reads remote.Denied
	Address string // host:port
	Account string
	Reason  string
}

func (e *Denied) Error() string {
	return fmt.Sprintf("%s refuses the account %q: %s", e.Address, e.Account, Quote(e.Reason))
}

// Conflict is the error if an object of the wanted name exists at the server without the
// owner's mark. The object was not changed.
type Conflict struct { //nolint:errname // reads remote.Conflict
	Address string // host:port
	Kind    string // "database", "vhost", "bus user", "Keystone user", "endpoint"
	Name    string
	Found   string // the mark of the object, or ""
	Want    Mark   // the owner's mark
}

func (e *Conflict) Error() string {
	found := "has no ownership mark"
	if e.Found != "" {
		found = fmt.Sprintf("has the mark %q", Quote(e.Found))
	}
	return fmt.Sprintf("%s: %s %q exists and %s, but must have %q: the operator does not change it, see Conflict in docs/troubleshooting.md", e.Address, e.Kind, e.Name, found, e.Want)
}

// Missing is the error if an object that is in use is not at the server, whose address is new.
type Missing struct { //nolint:errname // reads remote.Missing
	Address string // host:port
	Kind    string // as in Conflict
	Name    string
}

func (e *Missing) Error() string {
	return fmt.Sprintf("%s: %s %q does not exist: it must be the one in use, or a copy", e.Address, e.Kind, e.Name)
}

// cause returns why a connection failed, without details that differ between attempts
// (local ports, elapsed times), so that the message of a condition stays the same.
func cause(err error) string {
	var (
		dns  *net.DNSError
		op   *net.OpError
		ue   *url.Error
		cert *tls.CertificateVerificationError
		date x509.CertificateInvalidError
		sys  syscall.Errno
	)
	switch {
	case err == nil:
		return "no answer"
	case errors.As(err, &ue):
		return cause(ue.Err)
	case errors.Is(err, errLocal) && errors.As(err, &op):
		return op.Err.Error()
	case errors.As(err, &dns):
		return "host name " + dns.Name + ": " + dns.Err
	case errors.As(err, &date) && date.Reason == x509.Expired: // Go's message has the current time
		return fmt.Sprintf("TLS certificate refused: certificate has expired or is not yet valid: it is valid from %s until %s",
			date.Cert.NotBefore.Format(time.RFC3339), date.Cert.NotAfter.Format(time.RFC3339))
	case errors.As(err, &cert):
		return "TLS certificate refused: " + cert.Err.Error()
	case errors.As(err, &sys):
		return sys.Error()
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "no connection: timed out"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "no answer: timed out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, driver.ErrBadConn):
		return "the server closed the connection"
	}
	return err.Error()
}
