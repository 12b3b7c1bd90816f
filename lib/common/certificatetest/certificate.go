// Package certificatetest makes certificates for servers of tests.
package certificatetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates of servers.
type Authority struct {
	// PEM is the certificate of the authority, which clients trust.
	PEM         []byte
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates an authority, valid for a year, with a name of its own.
func NewAuthority(t testing.TB) Authority {
	t.Helper()
	return NewAuthorityUntil(t, time.Now().AddDate(1, 0, 0))
}

// NewAuthorityUntil is NewAuthority with another end of the validity.
func NewAuthorityUntil(t testing.TB, notAfter time.Time) Authority {
	t.Helper()
	number := big.NewInt(time.Now().UnixNano())
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "authority " + number.String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	signed := sign(t, template, template, key.Public(), key)
	certificate, err := x509.ParseCertificate(signed) // with the identifier of its key, which Sign repeats
	if err != nil {
		t.Fatal(err)
	}
	return Authority{PEM: encode("CERTIFICATE", signed), certificate: certificate, key: key}
}

// Sign returns the certificate and the key of a server, in PEM, for host names and IP
// addresses. The certificate is valid since an hour. It identifies the key of its authority,
// without which Python 3.13 and later refuse it (ssl.VERIFY_X509_STRICT).
func (a Authority) Sign(t testing.TB, notAfter time.Time, hosts ...string) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	private := newKey(t)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", sign(t, template, a.certificate, private.Public(), a.key)), encode("PRIVATE KEY", encoded)
}

func sign(t testing.TB, template, parent *x509.Certificate, public crypto.PublicKey, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func encode(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
